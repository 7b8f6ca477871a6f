// A cuBLAS that computes nothing and counts its calls: what libgemm_ladder_blas.so passes on. It has what the tests call.
#include <cublas_v2.h>

#include <atomic>

struct cublasContext {
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cudaStream_t stream = nullptr;
};

#define COUNTED(name, ...) \
  cublasStatus_t name(__VA_ARGS__) { return ++stand_in_calls, CUBLAS_STATUS_SUCCESS; }

extern "C" {

std::atomic<int> stand_in_calls{0};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) { return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return *mode = handle->pointers, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
  return handle->pointers = mode, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return *mode = handle->math, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return handle->math = mode, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t, int* count) { return *count = 0, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  return *stream = handle->stream, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  return handle->stream = stream, CUBLAS_STATUS_SUCCESS;
}
COUNTED(cublasSgemm_v2, cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*, const float*,
        int, const float*, int, const float*, float*, int)
COUNTED(cublasSgemmStridedBatched, cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const float*,
        const float*, int, long long int, const float*, int, long long int, const float*, float*, int, long long int,
        int)
COUNTED(cublasGemmEx, cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
        cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int, cublasComputeType_t,
        cublasGemmAlgo_t)

}  // extern "C"
