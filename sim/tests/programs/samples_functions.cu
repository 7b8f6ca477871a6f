// Calls: through pointers, virtual, recursive, with memory from the stack; switches.
#include <alloca.h>

#include <algorithm>

#include "samples.h"

namespace {

using Operation = int (*)(int, int);
__device__ int plus(int a, int b) { return a + b; }
__device__ int minus(int a, int b) { return a - b; }
__device__ int times(int a, int b) { return a * b; }

__device__ Operation operations[] = {plus, minus, times};
__constant__ Operation in_constant[] = {times, plus};

__global__ void call_by_table(const int* which, int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = operations[which[i]](i, 7) + in_constant[i % 2](i, 3);
}

void function_table() {
  const int n = 96;
  const auto which = numbers<int>(n, 3);
  const Array<int> from(which), to(n);
  call_by_table<<<1, n>>>(from, to);
  launched();
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i)
    expected[i] = (which[i] == 0 ? i + 7 : which[i] == 1 ? i - 7 : i * 7) + (i % 2 ? i + 3 : i * 3);
  expect_all(to.host(), expected);
}

__device__ Operation chosen = minus;

__global__ void call_argument(Operation operation, int* out) {
  out[threadIdx.x] = operation(static_cast<int>(threadIdx.x), 5);
}

/// The host reads a pointer that only the device can call, and hands it back.
void function_pointer_by_the_host() {
  Operation operation;
  CHECK(cudaMemcpyFromSymbol(&operation, chosen, sizeof operation));
  const Array<int> out(64);
  call_argument<<<1, 64>>>(operation, out);
  launched();
  std::vector<int> expected(64);
  for (int i = 0; i < 64; ++i) expected[i] = i - 5;
  expect_all(out.host(), expected);
}

class Shape {
 public:
  __device__ virtual int area() const = 0;
  __device__ virtual int doubled() const { return 2 * area(); }
  __device__ virtual ~Shape() {}
};
class Square : public Shape {
 public:
  __device__ explicit Square(int side) : side_(side) {}
  __device__ int area() const override { return side_ * side_; }

 private:
  int side_;
};
class Rectangle : public Shape {
 public:
  __device__ Rectangle(int width, int height) : width_(width), height_(height) {}
  __device__ int area() const override { return width_ * height_; }
  __device__ int doubled() const override { return width_ * height_ + area(); }

 private:
  int width_, height_;
};
/// Its area is that of others: the same function is active several times.
class Pair : public Shape {
 public:
  __device__ Pair(const Shape& one, const Shape& other) : one_(&one), other_(&other) {}
  __device__ int area() const override { return one_->area() + other_->area(); }

 private:
  const Shape *one_, *other_;
};

__global__ void measure(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  const Square square(i);
  const Rectangle rectangle(i, 3);
  const Pair pair(square, rectangle), nested(pair, square);
  const Shape* const shapes[] = {&square, &rectangle, &pair, &nested};
  const Shape* const shape = shapes[i % 4];
  out[i] = shape->area() + 1000 * shape->doubled();
}

void virtual_functions() {
  const int n = 64;
  const Array<int> out(n);
  measure<<<1, n>>>(out);
  launched();
  std::vector<int> expected(n);
  for (int i = 0; i < n; ++i) {
    const int square = i * i, rectangle = 3 * i,
              areas[] = {square, rectangle, square + rectangle, 2 * square + rectangle};
    expected[i] = areas[i % 4] * 2001;
  }
  expect_all(out.host(), expected);
}

/// Each call has an array of its own, and writes into its caller's.
__host__ __device__ __noinline__ void sort_by_merging(int* values, int* out, int n) {
  if (n == 1) {
    out[0] = values[0];
    return;
  }
  int left[8], right[8];
  const int half = n / 2;
  sort_by_merging(values, left, half);
  sort_by_merging(values + half, right, n - half);
  for (int i = 0, l = 0, r = 0; i < n; ++i)
    out[i] = r == n - half || (l < half && left[l] <= right[r]) ? left[l++] : right[r++];
}

__global__ void sort_sixteen(const int* in, int* out) {
  int own[16], sorted[16];
  for (int i = 0; i < 16; ++i) own[i] = in[threadIdx.x * 16 + i];
  sort_by_merging(own, sorted, 16);
  for (int i = 0; i < 16; ++i) out[threadIdx.x * 16 + i] = sorted[i];
}

void recursion_with_arrays() {
  auto in = numbers<int>(32 * 16, 1000);
  const Array<int> from(in), to(32 * 16);
  sort_sixteen<<<1, 32>>>(from, to);
  launched();
  for (int i = 0; i < 32; ++i) std::sort(in.begin() + 16 * i, in.begin() + 16 * (i + 1));
  expect_all(to.host(), in);
}

__device__ __noinline__ int reversed_sum(int n) {
  int* const values = static_cast<int*>(alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) values[i] = i;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += values[n - 1 - i] * i;
  return sum;
}

__global__ void use_stack(int* out) {
  int sum = 0;
  for (int repeat = 0; repeat < 50; ++repeat)
    sum += reversed_sum(static_cast<int>(threadIdx.x % 9) + 1);  // 50 times its stack
  out[threadIdx.x] = sum;
}

void stack_memory() {
  const Array<int> out(64);
  use_stack<<<1, 64>>>(out);
  launched();
  std::vector<int> expected(64);
  for (int t = 0; t < 64; ++t)
    for (int i = 0; i <= t % 9; ++i) expected[t] += 50 * (t % 9 - i) * i;
  expect_all(out.host(), expected);
}

__host__ __device__ int select(int kind, int x) {
  switch (kind) {
    case 0:
      return x + 1;
    case 1:
      return x * x;
    case 2:
      return x ^ 0x55;
    case 3:
      return x / 3;
    case 4:
      return x % 7;
    case 5:
      return -x;
    case 6:
      return x << 3;
    case 7:
      return x >> 1;
    case 8:
      return x * 17 - 4;
    default:
      return 0;
  }
}

__global__ void by_switch(const int* kinds, int* out) {
  out[threadIdx.x] = select(kinds[threadIdx.x], static_cast<int>(threadIdx.x));
}

void switches() {
  const auto kinds = numbers<int>(128, 11);
  const Array<int> from(kinds), to(128);
  by_switch<<<1, 128>>>(from, to);
  launched();
  std::vector<int> expected(128);
  for (int i = 0; i < 128; ++i) expected[i] = select(kinds[i], i);
  expect_all(to.host(), expected);
}

__device__ int count_down(int n);
__device__ int (*again)(int) = count_down;
__device__ __noinline__ int count_down(int n) { return n ? 1 + again(n - 1) : 0; }

__global__ void count_by_pointer(int* out) { out[threadIdx.x] = again(static_cast<int>(threadIdx.x)); }

void recursion_by_pointer() {
  const Array<int> out(32);
  count_by_pointer<<<1, 32>>>(out);
  launched();
  std::vector<int> expected(32);
  for (int i = 0; i < 32; ++i) expected[i] = i;
  expect_all(out.host(), expected);
}

// --- what is reported: the launch fails, and the program ends with 1 ---------------------------------------------------------------

__global__ void call_null(int* out, Operation operation) { out[0] = operation(1, 2); }

void null_pointer() {
  const Array<int> out(1);
  call_null<<<1, 32>>>(out, nullptr);
  launched();
}

using Other = float (*)(float);
__global__ void call_another_type(float* out, Operation operation) { out[0] = reinterpret_cast<Other>(operation)(1); }

void wrong_type() {
  Operation operation;
  CHECK(cudaMemcpyFromSymbol(&operation, chosen, sizeof operation));
  const Array<float> out(1);
  call_another_type<<<1, 32>>>(out, operation);
  launched();
}

__device__ __noinline__ int endless(int n) { return n == -1 ? 0 : 1 + endless(n + (n & 1)) * endless(n + 2); }
__global__ void recurse(int* out) { out[0] = endless(0); }

void endless_recursion() {
  const Array<int> out(1);
  recurse<<<1, 1>>>(out);
  launched();
}

__global__ void take_too_much(int* out, int n) {
  int* const values = static_cast<int*>(alloca(n * sizeof(int)));
  for (int i = 0; i < n; ++i) values[i] = i;
  out[0] = values[n / 2];
}

void full_stack() {
  const Array<int> out(1);
  take_too_much<<<1, 1>>>(out, 1 << 20);
  launched();
}

}  // namespace

int main(int argc, char** argv) {
  return run_samples(argc, argv,
                     {{"function_table", function_table},
                      {"function_pointer_by_the_host", function_pointer_by_the_host},
                      {"virtual_functions", virtual_functions},
                      {"recursion_with_arrays", recursion_with_arrays},
                      {"recursion_by_pointer", recursion_by_pointer},
                      {"stack_memory", stack_memory},
                      {"switches", switches},
                      {"fault_null_pointer", null_pointer},
                      {"fault_wrong_type", wrong_type},
                      {"fault_endless_recursion", endless_recursion},
                      {"fault_full_stack", full_stack}});
}
