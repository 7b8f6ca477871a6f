// cublasLt likewise: its descriptors keep what they are given, and cublasLtMatmul counts its calls.
#include <cublasLt.h>

#include <atomic>
#include <cstring>
#include <map>
#include <string>

namespace {

using Attributes = std::map<int, std::string>;
template <class Handle>
Attributes& of(Handle handle) {
  return *reinterpret_cast<Attributes*>(handle);
}
cublasStatus_t set(Attributes& attributes, int which, const void* value, size_t bytes) {
  attributes[which].assign(static_cast<const char*>(value), bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t get(const Attributes& attributes, int which, void* value, size_t bytes, size_t* written) {
  const auto found = attributes.find(which);
  std::memset(value, 0, bytes);  // the default of all that the tests ask for
  if (found != attributes.end()) std::memcpy(value, found->second.data(), found->second.size());
  if (written) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

std::atomic<int> stand_in_lt_calls{0};

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  auto* const attributes = new Attributes;
  const int epilogue = CUBLASLT_EPILOGUE_DEFAULT, bias_type = -1, fill = CUBLAS_FILL_MODE_FULL;
  set(*attributes, CUBLASLT_MATMUL_DESC_FILL_MODE, &fill, 4);
  set(*attributes, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute, 4),
      set(*attributes, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale, 4);
  set(*attributes, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4),
      set(*attributes, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, 4);
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return delete &of(desc), CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void* value, size_t bytes) {
  return set(of(desc), which, value, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              void* value, size_t bytes, size_t* written) {
  return get(of(desc), which, value, bytes, written);
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  auto* const attributes = new Attributes;
  const int order = CUBLASLT_ORDER_COL, batch = 1;
  set(*attributes, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, 4), set(*attributes, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, 4);
  set(*attributes, CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, 8), set(*attributes, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, 8);
  set(*attributes, CUBLASLT_MATRIX_LAYOUT_LD, &ld, 8), set(*attributes, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, 4);
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return delete &of(layout), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which,
                                                void* value, size_t bytes, size_t* written) {
  return get(of(layout), which, value, bytes, written);
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  return ++stand_in_lt_calls, CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
