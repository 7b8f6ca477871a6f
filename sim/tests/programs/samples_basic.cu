// One thread for one element: sums, products of matrices, transposes, stencils, convolutions and other independent work.
#include <cmath>

#include "samples.h"

namespace {

constexpr int threads = 128;
int blocks_for(int n) { return (n + threads - 1) / threads; }
__device__ int global_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// --- vectors -------------------------------------------------------------------------------------------------------------------

__global__ void add(const int* a, const int* b, int* c, int n) {
  const int i = global_index();
  if (i < n) c[i] = a[i] + b[i];
}

void vector_sum() {
  const int n = 1000;
  const auto a = numbers<int>(n, 1000), b = numbers<int>(n, 1000, 2);
  const Array<int> da(a), db(b), dc(n);
  add<<<blocks_for(n), threads>>>(da, db, dc, n);
  launched();
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = a[i] + b[i];
  expect_all(dc.host(), expected);
}

template <class T>
__global__ void axpy(T factor, const T* x, T* y, int n) {
  for (int i = global_index(); i < n; i += static_cast<int>(gridDim.x * blockDim.x)) y[i] += factor * x[i];
}

template <class T>
void run_axpy() {
  const int n = 3000;
  const auto x = numbers<T>(n, 100);
  auto y = numbers<T>(n, 100, 2);
  const Array<T> dx(x), dy(y);
  axpy<T><<<3, threads>>>(T(3), dx, dy, n);
  launched();
  for (int i = 0; i < n; ++i) y[i] += T(3) * x[i];
  expect_all(dy.host(), y);
}

void templates() {
  run_axpy<float>();
  run_axpy<double>();
  run_axpy<int>();
  run_axpy<int64_t>();
}

struct alignas(16) Particle {
  float x, y, z, mass;
};

__global__ void move_particles(Particle* p, int n) {
  const int i = global_index();
  if (i >= n) return;
  Particle one = p[i];
  one.x += 2 * one.mass;
  one.z = one.y;
  p[i] = one;
}

void structures() {
  const int n = 200;
  std::vector<Particle> particles(n);
  for (int i = 0; i < n; ++i) particles[i] = {float(i), float(2 * i), 0, float(i % 7)};
  const Array<Particle> device(particles);
  move_particles<<<blocks_for(n), threads>>>(device, n);
  launched();
  const auto got = device.host();
  for (int i = 0; i < n; ++i) {
    expect_equal(i, got[i].x, float(i + 2 * (i % 7)));
    expect_equal(i, got[i].z, float(2 * i));
  }
}

// --- matrices ------------------------------------------------------------------------------------------------------------------

__global__ void copy_transposed(const float* in, float* out, int rows, int columns) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row < rows && column < columns) out[column * rows + row] = in[row * columns + column];
}

constexpr int tile = 16;

template <int padding>
__global__ void transpose_by_tiles(const float* in, float* out, int rows, int columns) {
  __shared__ float part[tile][tile + padding];
  int column = static_cast<int>(blockIdx.x) * tile + static_cast<int>(threadIdx.x);
  int row = static_cast<int>(blockIdx.y) * tile + static_cast<int>(threadIdx.y);
  if (row < rows && column < columns) part[threadIdx.y][threadIdx.x] = in[row * columns + column];
  __syncthreads();
  column = static_cast<int>(blockIdx.y) * tile + static_cast<int>(threadIdx.x);
  row = static_cast<int>(blockIdx.x) * tile + static_cast<int>(threadIdx.y);
  if (row < columns && column < rows) out[row * rows + column] = part[threadIdx.x][threadIdx.y];
}

template <class Kernel>
void run_transpose(Kernel kernel) {
  const int rows = 45, columns = 70;
  const auto in = numbers<float>(rows * columns, 1000);
  const Array<float> from(in), to(rows * columns);
  const dim3 blocks((columns + tile - 1) / tile, (rows + tile - 1) / tile);
  kernel<<<blocks, dim3(tile, tile)>>>(from, to, rows, columns);
  launched();
  std::vector<float> expected(rows * columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) expected[c * rows + r] = in[r * columns + c];
  expect_all(to.host(), expected);
}

void transposes() {
  run_transpose(copy_transposed);
  run_transpose(transpose_by_tiles<0>);
  run_transpose(transpose_by_tiles<1>);
}

__global__ void multiply(const float* a, const float* b, float* c, int m, int n, int k) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

__global__ void multiply_by_tiles(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float ta[tile][tile], tb[tile][tile];
  const int column = static_cast<int>(blockIdx.x * tile + threadIdx.x);
  const int row = static_cast<int>(blockIdx.y * tile + threadIdx.y);
  float sum = 0;
  for (int begin = 0; begin < k; begin += tile) {
    const int ka = begin + static_cast<int>(threadIdx.x), kb = begin + static_cast<int>(threadIdx.y);
    ta[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
    tb[threadIdx.y][threadIdx.x] = column < n && kb < k ? b[kb * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

template <class Kernel>
void run_multiply(Kernel kernel) {
  const int m = 33, n = 50, k = 41;
  const auto a = numbers<float>(m * k, 10), b = numbers<float>(k * n, 10, 2);
  const Array<float> da(a), db(b), dc(m * n);
  kernel<<<dim3((n + tile - 1) / tile, (m + tile - 1) / tile), dim3(tile, tile)>>>(da, db, dc, m, n, k);
  launched();
  std::vector<float> expected(m * n);
  for (int r = 0; r < m; ++r)
    for (int c = 0; c < n; ++c)
      for (int i = 0; i < k; ++i) expected[r * n + c] += a[r * k + i] * b[i * n + c];
  expect_all(dc.host(), expected);
}

void matrix_products() {
  run_multiply(multiply);
  run_multiply(multiply_by_tiles);
}

__global__ void matrix_times_vector(const double* a, const double* x, double* y, int n) {
  const int row = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += 32) sum += a[row * n + i] * x[i];
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffff, sum, step);
  if (threadIdx.x == 0) y[row] = sum;
}

void matrix_vector() {
  const int n = 100;
  const auto a = numbers<double>(n * n, 50), x = numbers<double>(n, 50, 2);
  const Array<double> da(a), dx(x), dy(n);
  matrix_times_vector<<<n, 32>>>(da, dx, dy, n);
  launched();
  std::vector<double> expected(n);
  for (int r = 0; r < n; ++r)
    for (int i = 0; i < n; ++i) expected[r] += a[r * n + i] * x[i];
  expect_all(dy.host(), expected);
}

// --- neighbours ----------------------------------------------------------------------------------------------------------------

constexpr int radius = 3;

__global__ void stencil(const int* in, int* out, int n) {
  __shared__ int near[threads + 2 * radius];
  const int i = global_index(), own = static_cast<int>(threadIdx.x) + radius;
  near[own] = i < n ? in[i] : 0;
  if (threadIdx.x < radius) {
    near[own - radius] = i >= radius ? in[i - radius] : 0;
    near[own + threads] = i + threads < n ? in[i + threads] : 0;
  }
  __syncthreads();
  int sum = 0;
  for (int d = -radius; d <= radius; ++d) sum += near[own + d];
  if (i < n) out[i] = sum;
}

void stencil_1d() {
  const int n = 777;
  const auto in = numbers<int>(n, 1000);
  const Array<int> from(in), to(n);
  stencil<<<blocks_for(n), threads>>>(from, to, n);
  launched();
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i)
    for (int d = -radius; d <= radius; ++d) expected[i] += i + d >= 0 && i + d < n ? in[i + d] : 0;
  expect_all(to.host(), expected);
}

/// Seven points; the plane above, at and below the thread's own go through registers.
__global__ void heat(const float* in, float* out, int nx, int ny, int nz) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  const int plane = nx * ny, at = y * nx + x;
  float below = in[at], here = in[at + plane];
  for (int z = 1; z < nz - 1; ++z) {
    const int i = at + z * plane;
    const float above = in[i + plane];
    out[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + below + above - 6 * here;
    below = here;
    here = above;
  }
}

void stencil_3d() {
  const int nx = 20, ny = 18, nz = 12;
  const auto in = numbers<float>(nx * ny * nz, 100);
  const Array<float> from(in), to(nx * ny * nz);
  heat<<<dim3(2, 3), dim3(16, 8)>>>(from, to, nx, ny, nz);
  launched();
  std::vector<float> expected(nx * ny * nz);
  for (int z = 1; z < nz - 1; ++z)
    for (int y = 1; y < ny - 1; ++y)
      for (int x = 1; x < nx - 1; ++x) {
        const int i = (z * ny + y) * nx + x;
        expected[i] = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] - 6 * in[i];
      }
  expect_all(to.host(), expected);
}

__constant__ float weights[2 * radius + 1];

__global__ void convolve(const float* in, float* out, int rows, int columns, int step, int length) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), row = static_cast<int>(blockIdx.y);
  if (column >= columns || row >= rows) return;
  const int place = step == 1 ? column : row;
  float sum = 0;
  for (int d = -radius; d <= radius; ++d)
    if (place + d >= 0 && place + d < length) sum += weights[d + radius] * in[row * columns + column + d * step];
  out[row * columns + column] = sum;
}

void convolution() {
  const int rows = 23, columns = 150;
  const float kernel[] = {1, 2, 4, 8, 4, 2, 1};
  CHECK(cudaMemcpyToSymbol(weights, kernel, sizeof kernel));
  const auto in = numbers<float>(rows * columns, 16);
  const Array<float> from(in), middle(rows * columns), to(rows * columns);
  const dim3 grid(blocks_for(columns), rows);
  convolve<<<grid, threads>>>(from, middle, rows, columns, 1, columns);
  convolve<<<grid, threads>>>(middle, to, rows, columns, columns, rows);
  launched();
  std::vector<float> half(rows * columns), expected(rows * columns);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      for (int d = -radius; d <= radius; ++d)
        if (c + d >= 0 && c + d < columns) half[r * columns + c] += kernel[d + radius] * in[r * columns + c + d];
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      for (int d = -radius; d <= radius; ++d)
        if (r + d >= 0 && r + d < rows) expected[r * columns + c] += kernel[d + radius] * half[(r + d) * columns + c];
  expect_all(to.host(), expected);
}

__global__ void life(const uint8_t* now, uint8_t* next, int size) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(blockIdx.x);
  int alive = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dx || dy) alive += now[(y + dy + size) % size * size + (x + dx + size) % size];
  next[y * size + x] = alive == 3 || (alive == 2 && now[y * size + x]);
}

void game_of_life() {
  const int size = 48;
  auto cells = numbers<uint8_t>(size * size, 2);
  const Array<uint8_t> one(cells), other(size * size);
  for (int generation = 0; generation < 6; ++generation) {
    life<<<size, size>>>(generation % 2 ? other : one, generation % 2 ? one : other, size);
    std::vector<uint8_t> next(size * size);
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) {
        int alive = 0;
        for (int d = 0; d < 9; ++d)
          if (d != 4) alive += cells[(y + d / 3 - 1 + size) % size * size + (x + d % 3 - 1 + size) % size];
        next[y * size + x] = alive == 3 || (alive == 2 && cells[y * size + x]);
      }
    cells = next;
  }
  launched();
  expect_all(one.host(), cells);
}

// --- arithmetic ----------------------------------------------------------------------------------------------------------------

__host__ __device__ int escape_time(double x, double y) {
  double a = 0, b = 0;
  int n = 0;
  while (n < 60 && a * a + b * b < 4) {
    const double next = __builtin_fma(a, a, __builtin_fma(-b, b, x));
    b = __builtin_fma(2 * a, b, y);
    a = next;
    ++n;
  }
  return n;
}

__global__ void mandelbrot_rows(int* image, int width) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(blockIdx.x);
  image[y * width + x] = escape_time(-2 + x * 0.0625, -1.5 + y * 0.125);
}

void mandelbrot() {
  const int width = 48, height = 24;
  const Array<int> image(width * height);
  mandelbrot_rows<<<height, width>>>(image, width);
  launched();
  std::vector<int> expected(width * height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) expected[y * width + x] = escape_time(-2 + x * 0.0625, -1.5 + y * 0.125);
  expect_all(image.host(), expected);
}

struct Body {
  double x, y, z;
};

__global__ void forces(const Body* bodies, Body* out, int n) {
  __shared__ Body part[32];
  const int i = static_cast<int>(blockIdx.x) * 32 + static_cast<int>(threadIdx.x);
  const Body own = bodies[i];
  Body sum{0, 0, 0};
  for (int begin = 0; begin < n; begin += 32) {
    part[threadIdx.x] = bodies[begin + static_cast<int>(threadIdx.x)];
    __syncwarp();
    for (const Body& other : part) {
      const double dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
      const double square = fma(dx, dx, fma(dy, dy, fma(dz, dz, 0.5)));
      const double weight = 1 / (square * sqrt(square));
      sum.x = fma(dx, weight, sum.x);
      sum.y = fma(dy, weight, sum.y);
      sum.z = fma(dz, weight, sum.z);
    }
    __syncwarp();
  }
  out[i] = sum;
}

void n_body() {
  const int n = 96;
  std::vector<Body> bodies(n);
  const auto where = numbers<double>(3 * n, 64);
  for (int i = 0; i < n; ++i) bodies[i] = {where[3 * i], where[3 * i + 1], where[3 * i + 2]};
  const Array<Body> device(bodies), out(n);
  forces<<<n / 32, 32>>>(device, out, n);
  launched();
  const auto got = out.host();
  for (int i = 0; i < n; ++i) {
    Body sum{0, 0, 0};
    for (const Body& other : bodies) {
      const double dx = other.x - bodies[i].x, dy = other.y - bodies[i].y, dz = other.z - bodies[i].z;
      const double square = std::fma(dx, dx, std::fma(dy, dy, std::fma(dz, dz, 0.5)));
      const double weight = 1 / (square * std::sqrt(square));
      sum.x = std::fma(dx, weight, sum.x);
      sum.y = std::fma(dy, weight, sum.y);
      sum.z = std::fma(dz, weight, sum.z);
    }
    expect_equal(i, got[i].x, sum.x);
    expect_equal(i, got[i].y, sum.y);
    expect_equal(i, got[i].z, sum.z);
  }
}

/// The normal distribution by erfc: the device's own functions, which differ from the host's in the last digits.
__host__ __device__ double normal(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
__host__ __device__ double call_price(double price, double strike, double years) {
  const double rate = 0.02, volatility = 0.3, root = volatility * sqrt(years);
  const double d = (log(price / strike) + (rate + 0.5 * volatility * volatility) * years) / root;
  return price * normal(d) - strike * exp(-rate * years) * normal(d - root);
}

__global__ void price_options(const double* price, double* out, int n) {
  const int i = global_index();
  if (i < n) out[i] = call_price(price[i] + 5, 50, 0.25 * (i % 8 + 1));
}

void black_scholes() {
  const int n = 500;
  const auto prices = numbers<double>(n, 100);
  const Array<double> from(prices), to(n);
  price_options<<<blocks_for(n), threads>>>(from, to, n);
  launched();
  const auto got = to.host();
  for (int i = 0; i < n; ++i)
    expect_equal(i, std::abs(got[i] - call_price(prices[i] + 5, 50, 0.25 * (i % 8 + 1))) < 1e-11, true);
}

/// Points of a Sobol sequence in Gray-code order, in whole numbers.
__host__ __device__ uint32_t sobol(uint32_t index, const uint32_t* directions) {
  uint32_t point = 0;
  for (uint32_t gray = index ^ (index >> 1), bit = 0; gray; gray >>= 1, ++bit)
    if (gray & 1) point ^= directions[bit];
  return point;
}

__constant__ uint32_t directions[32];

__global__ void sobol_points(uint32_t* out, int n) {
  const int i = global_index();
  if (i < n) out[i] = sobol(static_cast<uint32_t>(i), directions);
}

void quasi_random() {
  const int n = 1000;
  uint32_t table[32];
  for (int i = 0; i < 32; ++i) table[i] = i ? table[i - 1] ^ (table[i - 1] >> 1) : 1u << 31;
  CHECK(cudaMemcpyToSymbol(directions, table, sizeof table));
  const Array<uint32_t> out(n);
  sobol_points<<<blocks_for(n), threads>>>(out, n);
  launched();
  std::vector<uint32_t> expected(n);
  for (int i = 0; i < n; ++i) expected[i] = sobol(i, table);
  expect_all(out.host(), expected);
}

/// Division of 128-bit numbers, and remainders: chains of carries and borrows.
__global__ void divide(const uint64_t* a, uint64_t* out, int n) {
  const int i = global_index();
  if (i >= n) return;
  const unsigned __int128 value = (static_cast<unsigned __int128>(a[i]) << 61) + a[(i + 1) % n];
  const unsigned __int128 by = (static_cast<unsigned __int128>(a[i] % 77) << 64) + a[(i + 3) % n] + 1;
  const unsigned __int128 quotient = value / by, rest = value % by;
  out[4 * i] = static_cast<uint64_t>(quotient);
  out[4 * i + 1] = static_cast<uint64_t>(quotient >> 64);
  out[4 * i + 2] = static_cast<uint64_t>(rest);
  out[4 * i + 3] = static_cast<uint64_t>(rest >> 64);
}

void wide_integers() {
  const int n = 96;
  std::vector<uint64_t> a(n), expected(4 * n);
  uint64_t state = 9;
  for (uint64_t& value : a) value = state = state * 6364136223846793005u + 1442695040888963407u;
  const Array<uint64_t> from(a), to(4 * n);
  divide<<<blocks_for(n), threads>>>(from, to, n);
  launched();
  for (int i = 0; i < n; ++i) {
    const unsigned __int128 value = (static_cast<unsigned __int128>(a[i]) << 61) + a[(i + 1) % n];
    const unsigned __int128 by = (static_cast<unsigned __int128>(a[i] % 77) << 64) + a[(i + 3) % n] + 1;
    expected[4 * i] = static_cast<uint64_t>(value / by);
    expected[4 * i + 1] = static_cast<uint64_t>(value / by >> 64);
    expected[4 * i + 2] = static_cast<uint64_t>(value % by);
    expected[4 * i + 3] = static_cast<uint64_t>(value % by >> 64);
  }
  expect_all(to.host(), expected);
}

__global__ void ticks(int64_t* out) {
  const int64_t begin = clock64();
  int sum = 0;
  for (int i = 0; i < 100; ++i) sum += i * static_cast<int>(threadIdx.x);
  out[threadIdx.x] = sum >= 0 && clock64() >= begin;
}

void clocks() {
  const Array<int64_t> out(64);
  ticks<<<1, 64>>>(out);
  launched();
  expect_all(out.host(), std::vector<int64_t>(64, 1));
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"vector_sum", vector_sum},
                      {"templates", templates},
                      {"structures", structures},
                      {"transposes", transposes},
                      {"matrix_products", matrix_products},
                      {"matrix_vector", matrix_vector},
                      {"stencil_1d", stencil_1d},
                      {"stencil_3d", stencil_3d},
                      {"convolution", convolution},
                      {"game_of_life", game_of_life},
                      {"mandelbrot", mandelbrot},
                      {"n_body", n_body},
                      {"black_scholes", black_scholes},
                      {"quasi_random", quasi_random},
                      {"wide_integers", wide_integers},
                      {"clocks", clocks}});
}
