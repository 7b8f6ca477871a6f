// libgemm_ladder_blas.so, preloaded under this program, which is linked to a cuBLAS that only counts its calls: what a rung takes is right
// and never reaches cuBLAS, and everything else does.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <random>
#include <vector>

extern "C" {
extern std::atomic<int> stand_in_calls, stand_in_lt_calls;
void gemm_ladder_blas_off(int) __attribute__((weak));
}

namespace {

constexpr int M = 136, N = 72, K = 40;

class Preload : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    cudaDeviceProp properties;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 ||
        cudaGetDeviceProperties(&properties, 0) != cudaSuccess || properties.major != 9)
      GTEST_SKIP() << "no GPU of sm_90 here";
    ASSERT_NE(gemm_ladder_blas_off, nullptr) << "libgemm_ladder_blas.so is not preloaded";
    ASSERT_EQ(cublasCreate(&handle_), CUBLAS_STATUS_SUCCESS);
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (auto* const matrix : {&a_, &b_, &c_}) {
      for (float& x : *matrix) x = normal(random);
      float* device = nullptr;
      ASSERT_EQ(cudaMalloc(&device, matrix->size() * sizeof(float)), cudaSuccess);
      ASSERT_EQ(cudaMemcpy(device, matrix->data(), matrix->size() * sizeof(float), cudaMemcpyHostToDevice),
                cudaSuccess);
      device_.push_back(device);
    }
    stand_in_calls = 0, stand_in_lt_calls = 0;
  }
  void TearDown() override {
    for (float* const device : device_) cudaFree(device);
    if (handle_) {
      EXPECT_EQ(cublasDestroy(handle_), CUBLAS_STATUS_SUCCESS);
    }
  }

  float* a() { return device_[0]; }
  float* b() { return device_[1]; }
  float* c() { return device_[2]; }

  cublasStatus_t sgemm(cublasOperation_t op_a = CUBLAS_OP_T, int lda = K, float beta = 0) {
    const float alpha = 1.5F;
    return cublasSgemm(handle_, op_a, CUBLAS_OP_N, M, N, K, &alpha, a(), lda, b(), K, &beta, c(), M);
  }

  /// Whether C is 1.5 A^T B + beta C + bias, by columns.
  void expect_product(float beta = 0, bool bias = false) {
    std::vector<float> now(c_.size());
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(now.data(), c(), now.size() * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
    for (int column = 0; column < N; ++column)
      for (int row = 0; row < M; ++row) {
        double sum = 0;
        for (int k = 0; k < K; ++k) sum += static_cast<double>(a_[row * K + k]) * b_[column * K + k];
        const double want = 1.5 * sum + beta * c_[column * M + row] + (bias ? a_[row] : 0);
        ASSERT_NEAR(now[column * M + row], want, 1e-4) << row << ", " << column;
      }
  }

  cublasHandle_t handle_ = nullptr;
  std::vector<float> a_ = std::vector<float>(M * K), b_ = std::vector<float>(N * K), c_ = std::vector<float>(M * N);
  std::vector<float*> device_;
};

TEST_F(Preload, ARungComputesWhatItTakes) {
  ASSERT_EQ(sgemm(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_calls, 0);
  expect_product();
}

TEST_F(Preload, OnTheHandlesStreamAndOntoC) {
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cublasSetStream(handle_, stream), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(sgemm(CUBLAS_OP_T, K, 0.5F), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_calls, 0);
  expect_product(0.5F);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Preload, GemmExInFp32LikeWise) {
  const float alpha = 1.5F, beta = 0;
  ASSERT_EQ(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, M, N, K, &alpha, a(), CUDA_R_32F, K, b(), CUDA_R_32F, K,
                         &beta, c(), CUDA_R_32F, M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_calls, 0);
  expect_product();
}

TEST_F(Preload, AllElseGoesToCublas) {
  int calls = 0;
  const auto passed = [&](const char* what) { EXPECT_EQ(stand_in_calls, ++calls) << what; };
  ASSERT_EQ(sgemm(CUBLAS_OP_N, M + 1), CUBLAS_STATUS_SUCCESS);
  passed("rows that are not aligned");
  ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_DEVICE), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(sgemm(), CUBLAS_STATUS_SUCCESS);
  passed("factors in device memory");
  ASSERT_EQ(cublasSetPointerMode(handle_, CUBLAS_POINTER_MODE_HOST), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(sgemm(CUBLAS_OP_N, M), CUBLAS_STATUS_SUCCESS);
  passed("TF32 in a layout that its rung does not take");
  ASSERT_EQ(cublasSetMathMode(handle_, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_SUCCESS);
  const float one = 1, zero = 0;
  ASSERT_EQ(cublasGemmEx(handle_, CUBLAS_OP_T, CUBLAS_OP_N, M, N, K, &one, a(), CUDA_R_16BF, K, b(), CUDA_R_16BF, K,
                         &zero, c(), CUDA_R_16BF, M, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
            CUBLAS_STATUS_SUCCESS);
  passed("a type that was not asked for");
  ASSERT_EQ(cublasSgemmStridedBatched(handle_, CUBLAS_OP_T, CUBLAS_OP_N, 8, 8, 8, &one, a(), 8, 64, b(), 8, 64, &zero,
                                      c(), 8, 64, 4),
            CUBLAS_STATUS_SUCCESS);
  passed("a batch of small matrices");
  gemm_ladder_blas_off(1);
  ASSERT_EQ(sgemm(), CUBLAS_STATUS_SUCCESS);
  passed("switched off");
  gemm_ladder_blas_off(0);
  ASSERT_EQ(sgemm(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_calls, calls) << "switched on again";
  expect_product();
}

TEST_F(Preload, LinearWithABias) {
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t layout_a, layout_b, layout_c;
  ASSERT_EQ(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const cublasLtEpilogue_t with_bias = CUBLASLT_EPILOGUE_BIAS, gelu = CUBLASLT_EPILOGUE_GELU_BIAS;
  const float* const bias = a();
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias, sizeof with_bias);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  cublasLtMatrixLayoutCreate(&layout_a, CUDA_R_32F, K, M, K),
      cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_32F, K, N, K);
  cublasLtMatrixLayoutCreate(&layout_c, CUDA_R_32F, M, N, M);
  const float alpha = 1.5F, beta = 0;
  const auto call = [&] {
    return cublasLtMatmul(nullptr, desc, &alpha, a(), layout_a, b(), layout_b, &beta, c(), layout_c, c(), layout_c,
                          nullptr, nullptr, 0, nullptr);
  };
  ASSERT_EQ(call(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_lt_calls, 0);
  expect_product(0, true);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &gelu, sizeof gelu);
  ASSERT_EQ(call(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_lt_calls, 1) << "an epilogue that no rung has";
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias, sizeof with_bias);
  cublasLtMatrixLayoutDestroy(layout_b);
  cublasLtMatrixLayoutCreate(&layout_b, CUDA_R_32F, K + 4, N, K + 4);
  ASSERT_EQ(call(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(stand_in_lt_calls, 2) << "sizes that do not fit: cuBLAS says so";
  for (const auto layout : {layout_a, layout_b, layout_c}) cublasLtMatrixLayoutDestroy(layout);
  cublasLtMatmulDescDestroy(desc);
}

}  // namespace
