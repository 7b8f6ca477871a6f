// At the memory's speed: 16-byte loads by neighbouring threads, several per thread before the first is used, and each number is read once
// and kept in registers until its scale is known; twice with one scale for all, and in rows that are too long for the registers of a block.
#include "lib/quantise.h"

#include <algorithm>

#include "common/operand_types.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/tunable.h"
#include "common/types.h"

namespace ladder {
namespace {

constexpr int THREADS = TUNABLE(THREADS, 128);  // where nothing else decides it
constexpr int SIDE = SCALE_BLOCK;

/// Elements at `column` of a row, as many as 16 bytes hold. VECTORS: a row has a whole number of them, all aligned.
template <class T, bool VECTORS>
struct Access {
  static constexpr int SIZE = Vector<T>::SIZE;

  /// Zeros past the end.
  static __device__ Vector<T> load(const Quantisation& q, int row, int column) {
    Vector<T> rx;
    const T* const x = static_cast<const T*>(q.x) + row * q.ld + column;
    if constexpr (VECTORS) {
      rx.bits = row < q.rows && column < q.columns ? *reinterpret_cast<const uint4*>(x) : uint4{};
    } else {
      for (int i = 0; i < SIZE; ++i) rx.element[i] = row < q.rows && column + i < q.columns ? x[i] : T(0.0F);
    }
    return rx;
  }

  static __device__ void store(const Quantisation& q, int row, int column, const Vector<T>& rx, float inverse) {
    uint8_t* const to = q.to + row * q.ld_to + column;
    if constexpr (VECTORS) {
      union {
        uint16_t pairs[SIZE / 2];
        std::conditional_t<SIZE == 8, uint2, uint32_t> bits;
      } packed;
#pragma unroll
      for (int i = 0; i < SIZE; i += 2)
        packed.pairs[i / 2] = quantised2(to_float(rx.element[i]), to_float(rx.element[i + 1]), inverse);
      if (row < q.rows && column < q.columns) *reinterpret_cast<decltype(packed.bits)*>(to) = packed.bits;
    } else {
      for (int i = 0; i < SIZE; ++i)
        if (row < q.rows && column + i < q.columns) to[i] = quantised(to_float(rx.element[i]), inverse);
    }
  }
};

template <class T>
__device__ float largest_of(const Vector<T>& rx) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < Vector<T>::SIZE; ++i) largest = fmaxf(largest, fabsf(to_float(rx.element[i])));
  return largest;
}

/// Of LANES neighbouring lanes, to all of them.
template <int LANES>
__device__ float largest_of_lanes(float x) {
#pragma unroll
  for (int lanes = LANES / 2; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0U, x, lanes));
  return x;
}

/// Of all threads of a block, to all of them.
__device__ float largest_of_threads(float x) {
  __shared__ float of_warp[32];
  x = largest_of_lanes<32>(x);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = x;
  __syncthreads();
  return largest_of_lanes<32>(threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : 0.0F);
}

/// Pieces of 4 rows x 128 columns. One is for the lanes that 128 elements fill: each has a vector of each row.
template <class T>
struct Piece {
  static constexpr int ROWS = 4, LANES = SIDE / Vector<T>::SIZE, PER_BLOCK = THREADS / LANES;
  __device__ Piece(const Quantisation& q, int piece) {
    const int across = ceil_div(q.columns, SIDE), lane = threadIdx.x % LANES;
    row = piece / across * ROWS, column = piece % across * SIDE + lane * Vector<T>::SIZE;
  }
  static __host__ __device__ int count(const Quantisation& q) {
    return ceil_div(q.rows, ROWS) * ceil_div(q.columns, SIDE);
  }
  static __device__ int first() { return blockIdx.x * PER_BLOCK + threadIdx.x / LANES; }
  int row, column;
};

template <class T, bool VECTORS>
__global__ void __launch_bounds__(THREADS) quantise_row_128(Quantisation q, int64_t ld_scale) {
  using Access = Access<T, VECTORS>;
  constexpr int ROWS = Piece<T>::ROWS;
  const Piece<T> piece(q, Piece<T>::first());
  Vector<T> rx[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) rx[i] = Access::load(q, piece.row + i, piece.column);
  // [divide]
  // Divisions take long: a lane divides for one of the four rows.
  const int own_row = threadIdx.x % ROWS;
  float own_largest = 0;
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const float largest = largest_of_lanes<Piece<T>::LANES>(largest_of(rx[i]));
    if (i == own_row) own_largest = largest;
  }
  const float own_scale = scale_of(own_largest), own_inverse = 1 / own_scale;
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
    Access::store(q, piece.row + i, piece.column, rx[i], __shfl_sync(~0U, own_inverse, i, ROWS));
  // [/divide]
  if (threadIdx.x % Piece<T>::LANES < ROWS && piece.row + own_row < q.rows)
    q.scale[piece.column / SIDE * ld_scale + piece.row + own_row] = own_scale;
}

/// 16 rows at once, 8 times.
template <class T>
constexpr int SQUARE_THREADS = 16 * SIDE / Vector<T>::SIZE;

template <class T, bool VECTORS>
__global__ void __launch_bounds__(SQUARE_THREADS<T>) quantise_square(Quantisation q, int64_t ld_scale) {
  using Access = Access<T, VECTORS>;
  constexpr int LANES = SIDE / Vector<T>::SIZE;
  const int across = ceil_div(q.columns, SIDE), square_row = blockIdx.x / across, square_column = blockIdx.x % across;
  const int row = square_row * SIDE + threadIdx.x / LANES,
            column = square_column * SIDE + threadIdx.x % LANES * Vector<T>::SIZE;
  Vector<T> rx[SIDE / 16];
  float largest = 0;
#pragma unroll
  for (int i = 0; i < SIDE / 16; ++i) rx[i] = Access::load(q, row + 16 * i, column);
#pragma unroll
  for (int i = 0; i < SIDE / 16; ++i) largest = fmaxf(largest, largest_of(rx[i]));
  const float scale = scale_of(largest_of_threads(largest));
#pragma unroll
  for (int i = 0; i < SIDE / 16; ++i) Access::store(q, row + 16 * i, column, rx[i], 1 / scale);
  if (threadIdx.x == 0) q.scale[square_row * ld_scale + square_column] = scale;
}

constexpr int ROW_VECTORS = 4;  // per thread

/// A block has a row: of up to 32,768 elements of 16 bits, or half as many of 32, it reads each once.
template <class T, bool VECTORS>
__global__ void __launch_bounds__(1024) quantise_row(Quantisation q) {
  using Access = Access<T, VECTORS>;
  const int row = blockIdx.x, column = threadIdx.x * Vector<T>::SIZE, step = blockDim.x * Vector<T>::SIZE;
  Vector<T> rx[ROW_VECTORS];
  const auto load = [&](int start) {
#pragma unroll
    for (int i = 0; i < ROW_VECTORS; ++i) rx[i] = Access::load(q, row, start + column + i * step);
  };
  float largest = 0;
  for (int64_t start = 0; start < q.columns; start += ROW_VECTORS * step) {
    load(start);
#pragma unroll
    for (int i = 0; i < ROW_VECTORS; ++i) largest = fmaxf(largest, largest_of(rx[i]));
  }
  const float scale = scale_of(largest_of_threads(largest));
  for (int64_t start = 0; start < q.columns; start += ROW_VECTORS * step) {
    if (q.columns > ROW_VECTORS * step) load(start);
#pragma unroll
    for (int i = 0; i < ROW_VECTORS; ++i) Access::store(q, row, start + column + i * step, rx[i], 1 / scale);
  }
  if (threadIdx.x == 0) q.scale[row] = scale;
}

// One scale for all: a kernel finds it, another one converts. Each of the three launches as soon as the one before it has begun, and
// waits for its end only where it needs the scale.

__device__ void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}
__device__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__global__ void start_scale(Quantisation q) {
  let_next_begin();
  *q.scale = LEAST_SCALE;
}

template <class T, bool VECTORS>
__global__ void __launch_bounds__(THREADS) find_scale(Quantisation q) {
  let_next_begin();
  float largest = 0;
  for (int i = Piece<T>::first(); i < Piece<T>::count(q); i += gridDim.x * Piece<T>::PER_BLOCK) {
    const Piece<T> piece(q, i);
    Vector<T> rx[Piece<T>::ROWS];
#pragma unroll
    for (int j = 0; j < Piece<T>::ROWS; ++j) rx[j] = Access<T, VECTORS>::load(q, piece.row + j, piece.column);
#pragma unroll
    for (int j = 0; j < Piece<T>::ROWS; ++j) largest = fmaxf(largest, largest_of(rx[j]));
  }
  const float scale = scale_of(largest_of_threads(largest));
  wait_for_previous();
  // Of positive numbers the larger one has the larger bits.
  if (threadIdx.x == 0) atomicMax(reinterpret_cast<int*>(q.scale), __float_as_int(scale));
}

/// Backwards: what was read last is in L2 still.
template <class T, bool VECTORS>
__global__ void __launch_bounds__(THREADS) convert(Quantisation q) {
  const int i = Piece<T>::count(q) - 1 - Piece<T>::first();
  if (i < 0) return;
  const Piece<T> piece(q, i);
  Vector<T> rx[Piece<T>::ROWS];
#pragma unroll
  for (int j = 0; j < Piece<T>::ROWS; ++j) rx[j] = Access<T, VECTORS>::load(q, piece.row + j, piece.column);
  wait_for_previous();
  const float inverse = 1 / *q.scale;
#pragma unroll
  for (int j = 0; j < Piece<T>::ROWS; ++j) Access<T, VECTORS>::store(q, piece.row + j, piece.column, rx[j], inverse);
}

void launch_early(void (*kernel)(Quantisation), int blocks, const Quantisation& q, cudaStream_t stream) {
  cudaFuncAttributes attributes{};
  cuda_check(cudaFuncGetAttributes(&attributes, kernel));
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks), config.blockDim = dim3(THREADS), config.stream = stream;
  config.attrs = &early, config.numAttrs = attributes.ptxVersion >= 90;  // code of older PTX does not wait: not early
  cuda_check(cudaLaunchKernelEx(&config, kernel, q));
}

template <class T, bool VECTORS>
void launch(const Quantisation& q, cudaStream_t stream) {
  const int pieces = ceil_div(Piece<T>::count(q), Piece<T>::PER_BLOCK);
  switch (q.block) {
    case Block::all:
      start_scale<<<1, 1, 0, stream>>>(q);
      launch_early(find_scale<T, VECTORS>, std::min(pieces, 2048 / THREADS * device_limits().sms), q, stream);
      launch_early(convert<T, VECTORS>, pieces, q, stream);
      break;
    case Block::row: {
      const int warps = ceil_div(ceil_div(q.columns, Vector<T>::SIZE), 32 * ROW_VECTORS);
      quantise_row<T, VECTORS><<<q.rows, 32 * std::min(warps, 32), 0, stream>>>(q);
      break;
    }
    case Block::row_128:
      quantise_row_128<T, VECTORS><<<pieces, THREADS, 0, stream>>>(q, q.ld_scale());
      break;
    case Block::square:
      quantise_square<T, VECTORS>
          <<<ceil_div(q.rows, SIDE) * ceil_div(q.columns, SIDE), SQUARE_THREADS<T>, 0, stream>>>(q, q.ld_scale());
      break;
  }
}

}  // namespace

int64_t Quantisation::ld_scale() const {
  if (block == Block::row_128) return scale_ld_a(rows);
  if (block == Block::square) return scale_ld_b(columns);
  return 1;
}

int64_t Quantisation::scales() const {
  if (block == Block::all) return 1;
  if (block == Block::row) return rows;
  return ld_scale() * ceil_div(block == Block::square ? rows : columns, SIDE);
}

void quantise(const Quantisation& q, cudaStream_t stream) {
  if (q.rows == 0 || q.columns == 0) return;
  visit(Types<Type::f32, Type::tf32, Type::bf16, Type::f16>{}, q.type, [&]<Type type>() {
    using T = typename Operand<type>::Element;
    constexpr int SIZE = Vector<T>::SIZE;
    const auto multiple = [](auto x, int of) { return static_cast<int64_t>(x) % of == 0; };
    const bool vectors = multiple(q.columns, SIZE) && multiple(q.ld, SIZE) && multiple(q.ld_to, SIZE) &&
                         multiple(reinterpret_cast<uintptr_t>(q.x), 16) &&
                         multiple(reinterpret_cast<uintptr_t>(q.to), SIZE);
    vectors ? launch<T, true>(q, stream) : launch<T, false>(q, stream);
  });
  cuda_check(cudaGetLastError());
}

}  // namespace ladder
