#include "tests/gpu/broken/broken.h"

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common/epilogue.h"
#include "common/quantise.h"
#include "common/rung.h"
#include "common/scales.h"

namespace ladder::broken {
namespace {

constexpr int tile = 32;

template <Fault fault>
__global__ void __launch_bounds__(tile* tile) sgemm(Problem p) {
  __shared__ float sA[tile][tile], sB[tile][tile];
  const float *A = static_cast<const float*>(p.a), *B = static_cast<const float*>(p.b);
  const int tiles_n = ceil_div(p.n, tile);
  const int y = threadIdx.x / tile, x = threadIdx.x % tile;
  const int row = blockIdx.x / tiles_n * tile + y, col = blockIdx.x % tiles_n * tile + x;
  const int K = fault == Fault::last_k_forgotten ? p.k - 1 : fault == Fault::reads_padding ? p.k + 1 : p.k;
  float acc = 0.0F;
  for (int k_tile = 0; k_tile < K; k_tile += tile) {
    sA[y][x] = row < p.m && k_tile + x < K ? A[static_cast<size_t>(row) * p.lda + k_tile + x] : 0.0F;
    sB[y][x] = k_tile + y < min(K, p.k) && col < p.n ? B[static_cast<size_t>(k_tile + y) * p.ldb + col] : 0.0F;
    if (fault != Fault::missing_barrier) __syncthreads();
    for (int k = 0; k < tile; ++k) acc += sA[y][k] * sB[k][x];
    __syncthreads();
  }
  if (row >= p.m || col >= p.n) return;
  if (fault == Fault::edge_unwritten && col == p.n - 1) return;
  if (row == p.m / 2 && col == p.n / 3) {
    if (fault == Fault::one_nan) acc = __int_as_float(0x7FFFFFFF);
    if (fault == Fault::one_infinite) acc = __int_as_float(0x7F800000);
  }
  float* C = static_cast<float*>(p.c);
  const int at = fault == Fault::swapped_result && row == 0 && col < 2 && p.n > 1 ? 1 - col : col;
  float* gC = C + static_cast<size_t>(row) * p.ldc + at;
  const bool reads_c = p.beta != 0.0F || fault == Fault::reads_c;
  *gC = reads_c ? p.alpha * acc + p.beta * *gC : p.alpha * acc;
  if (fault == Fault::writes_padding && col == p.n - 1) gC[1] = 0.0F;
  if (fault == Fault::writes_before && row == 0 && col == 0) gC[-1] = 0.0F;
}

__global__ void hgemm(Problem p, int K) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (col >= p.n) return;
  const __half *a = static_cast<const __half*>(p.a) + static_cast<size_t>(row) * p.lda,
               *b = static_cast<const __half*>(p.b) + static_cast<size_t>(col) * p.ldb;
  __half sum = __float2half(0.0F);
  for (int k = 0; k < K; k += 8) {
    float products = 0.0F;
    for (int i = k; i < min(k + 8, K); ++i) products += __half2float(a[i]) * __half2float(b[i]);
    sum = __float2half_rn(__half2float(sum) + products);
  }
  float* const gC = static_cast<float*>(p.c) + static_cast<size_t>(row) * p.ldc + col;
  *gC = p.alpha * __half2float(sum) + (p.beta == 0.0F ? 0.0F : p.beta * *gC);
}

/// 128 columns of a row per block, one per thread.
__global__ void __launch_bounds__(128) epilogue(EpilogueFault fault, Problem p, int scale_c_ld) {
  __shared__ float magnitude[128];
  using T = __nv_bfloat16;
  const int blocks = ceil_div(p.n, 128), row = blockIdx.x / blocks, col = blockIdx.x % blocks * 128 + threadIdx.x;
  float x = 0.0F, gate = 0.0F;
  if (col < p.n)
    for (int k = 0; k < p.k; ++k) {
      const float a = __bfloat162float(static_cast<const T*>(p.a)[static_cast<size_t>(row) * p.lda + k]);
      const size_t at = static_cast<size_t>(col) * p.ldb + k;
      x += a * __bfloat162float(static_cast<const T*>(p.b)[at]);
      if (p.epilogue.gate) gate += a * __bfloat162float(static_cast<const T*>(p.b_gate)[at]);
    }
  const Place here{row, col, gate};
  const Place bias_at{row, fault == EpilogueFault::bias_of_next_column ? (col + 1) % p.n : col, gate};
  x = Scale{p.alpha}(x, here);
  if (p.epilogue.bias && fault != EpilogueFault::bias_forgotten)
    x = Bias<T>{static_cast<const T*>(p.bias), p.n}(x, bias_at);
  if (p.epilogue.activation == Activation::silu)
    x = fault == EpilogueFault::gelu_for_silu ? Gelu{}(x, here) : Silu{}(x, here);
  if (p.epilogue.activation == Activation::gelu) x = Gelu{}(x, here);
  if (p.epilogue.gate && fault != EpilogueFault::gate_forgotten) x = Gate{p.alpha}(x, here);
  if (!p.epilogue.quantise) {
    if (col < p.n) static_cast<T*>(p.c)[static_cast<size_t>(row) * p.ldc + col] = __float2bfloat16(x);
    return;
  }
  magnitude[threadIdx.x] = col < p.n ? fabsf(x) : 0.0F;
  __syncthreads();
  float largest = 0.0F;
  for (const float one : magnitude) largest = fmaxf(largest, one);
  const float scale_of_row = scale_of(fault == EpilogueFault::scale_doubled ? 2.0F * largest : largest);
  if (col < p.n)
    static_cast<__nv_fp8_e4m3*>(p.c)[static_cast<size_t>(row) * p.ldc + col] = __nv_fp8_e4m3(x * (1.0F / scale_of_row));
  if (threadIdx.x != 0 || (fault == EpilogueFault::scale_unwritten && row == p.m - 1)) return;
  float* const scale = p.scale_c + static_cast<size_t>(col / 128) * scale_c_ld;
  scale[fault == EpilogueFault::scale_of_other_row && row < 2 ? 1 - row : row] = scale_of_row;
  if (fault == EpilogueFault::scale_padding && row == p.m - 1) scale[p.m] = scale_of_row;
}

__global__ void scaled_gemm(Problem p, ScaleFault fault) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (col >= p.n) return;
  const __nv_fp8_e4m3 *a = static_cast<const __nv_fp8_e4m3*>(p.a) + static_cast<size_t>(row) * p.lda,
                      *b = static_cast<const __nv_fp8_e4m3*>(p.b) + static_cast<size_t>(col) * p.ldb;
  int group = 0;
  while (group + 1 < p.groups && p.first_row[group + 1] <= row) ++group;
  b += static_cast<size_t>(group) * p.n * p.ldb;
  const int group_of_scale = fault == ScaleFault::group_of_b ? (group + 1) % p.groups : group;
  const float* const scale_b = p.scale_b + group_of_scale * scale_stride_b(p.scales, p.n, p.k);
  const int row_of_scale = fault == ScaleFault::first_of_a   ? 0
                           : fault == ScaleFault::group_of_a ? row - p.first_row[group]
                                                             : row;
  const int col_of_scale = fault == ScaleFault::neighbour_of_b && col + 1 < p.n ? col + 1 : col;
  float sum = 0.0F;
  for (int k = 0; k < p.k; ++k) {
    const int k_of_scale = fault == ScaleFault::first_of_a ? 0 : k;
    float scale = 1.0F;
    if (fault != ScaleFault::forgets_a)
      scale *= scale_at(p.scales, p.scale_a, scale_index_a(p.scales, p.m, p.k, row_of_scale, k_of_scale));
    if (fault != ScaleFault::forgets_b)
      scale *= scale_at(p.scales, scale_b, scale_index_b(p.scales, p.k, col_of_scale, k));
    sum += static_cast<float>(a[k]) * static_cast<float>(b[k]) * scale;
  }
  float* const gC = static_cast<float*>(p.c) + static_cast<size_t>(row) * p.ldc + col;
  *gC = p.alpha * sum + (p.beta == 0.0F ? 0.0F : p.beta * *gC);
}

}  // namespace

void launch_epilogue(EpilogueFault fault, const Problem& p) {
  epilogue<<<p.m * ceil_div(p.n, 128), 128, 0, p.stream>>>(fault, p, p.scale_c_ld());
  cuda_check(cudaGetLastError());
}

void launch_scaled(ScaleFault fault, const Problem& p) {
  scaled_gemm<<<dim3(ceil_div(p.n, 64), p.m), 64, 0, p.stream>>>(p, fault);
  cuda_check(cudaGetLastError());
}

void launch_fp16_sums(bool forgets_k_step, const Problem& p) {
  hgemm<<<dim3(ceil_div(p.n, 64), p.m), 64, 0, p.stream>>>(p, forgets_k_step ? p.k - 16 : p.k);
  cuda_check(cudaGetLastError());
}

void launch(Fault fault, const Problem& p) {
  const int blocks = ceil_div(p.m, tile) * ceil_div(p.n, tile);
  const auto run = [&](auto kernel) { kernel<<<blocks, tile * tile, 0, p.stream>>>(p); };
  switch (fault) {
    case Fault::none:
      run(sgemm<Fault::none>);
      break;
    case Fault::missing_barrier:
      run(sgemm<Fault::missing_barrier>);
      break;
    case Fault::edge_unwritten:
      run(sgemm<Fault::edge_unwritten>);
      break;
    case Fault::one_nan:
      run(sgemm<Fault::one_nan>);
      break;
    case Fault::one_infinite:
      run(sgemm<Fault::one_infinite>);
      break;
    case Fault::last_k_forgotten:
      run(sgemm<Fault::last_k_forgotten>);
      break;
    case Fault::reads_padding:
      run(sgemm<Fault::reads_padding>);
      break;
    case Fault::reads_c:
      run(sgemm<Fault::reads_c>);
      break;
    case Fault::writes_padding:
      run(sgemm<Fault::writes_padding>);
      break;
    case Fault::writes_before:
      run(sgemm<Fault::writes_before>);
      break;
    case Fault::swapped_result:
      run(sgemm<Fault::swapped_result>);
      break;
    case Fault::leaves_lock:
      run(sgemm<Fault::none>);
      cuda_check(cudaMemsetAsync(p.locks + 2, 1, sizeof(unsigned), p.stream));
      return;
    case Fault::writes_workspace:
      run(sgemm<Fault::none>);
      cuda_check(cudaMemsetAsync(static_cast<char*>(p.workspace) + 1024, 0, sizeof(float), p.stream));
      return;
  }
  cuda_check(cudaGetLastError());
}

}  // namespace ladder::broken
