// libgemm_ladder_blas.so: preloaded under a program, it stands in for functions of cuBLAS, as NVBLAS does for the host's BLAS. What a rung
// computes faster it enqueues; all else, and whatever fails, goes on to cuBLAS.
//
//   LD_PRELOAD=.../libgemm_ladder_blas.so python train.py
//
//   GEMM_LADDER_OFF=1       everything goes to cuBLAS
//   GEMM_LADDER_TYPES=LIST  the types that rungs compute; f32,tf32 without. bf16 and f16 can be added: there both are about as fast
//   GEMM_LADDER_LOG=1       a line per product that is new: which kernel, how long, beside cuBLAS; at exit a summary, on stderr
#include <cublasLt.h>
#include <cublas_v2.h>
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "include/gemm_ladder.h"
#include "lib/internal.h"
#include "lib/plain.h"

using namespace ladder;

namespace {

// ---- what was asked for -----------------------------------------------------------------------------------------------

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value && *value && std::strcmp(value, "0") != 0;
}
std::atomic<bool> off = is_set("GEMM_LADDER_OFF");
const bool logs = is_set("GEMM_LADDER_LOG");

bool takes(gemm_ladder_type_t type) {
  static const std::set<std::string> types = [] {
    const char* const asked = std::getenv("GEMM_LADDER_TYPES");
    std::set<std::string> words;
    const std::string text = std::string(asked ? asked : "f32,tf32") + ",";
    for (size_t begin = 0, end; (end = text.find(',', begin)) != std::string::npos; begin = end + 1)
      words.insert(text.substr(begin, end - begin));
    return words;
  }();
  static const char* const names[] = {"f32", "tf32", "bf16", "f16"};
  return !off && types.contains(names[type]);
}

// ---- cuBLAS itself ----------------------------------------------------------------------------------------------------

/// The function that the program would have called. cuBLAS may have been loaded where RTLD_NEXT does not look.
template <class Function>
Function next(const char* name, const char* library) {
  void* found = dlsym(RTLD_NEXT, name);
  for (const int how : {RTLD_NOLOAD, 0})  // the one that is loaded, whichever it is, before another
    for (const char* version : {".13", ".12"}) {
      if (found) return reinterpret_cast<Function>(found);
      if (void* const opened = dlopen((std::string(library) + version).c_str(), RTLD_LAZY | how))
        found = dlsym(opened, name);
    }
  if (!found) std::fprintf(stderr, "gemm_ladder: there is no %s\n", name);
  return reinterpret_cast<Function>(found);
}
/// Of these the header has a second form for C++.
using GemmEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*,
                              const void*, cudaDataType, int, const void*, cudaDataType, int, const void*, void*,
                              cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t);
using GemmStridedBatchedEx = cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                            const void*, const void*, cudaDataType, int, long long int, const void*,
                                            cudaDataType, int, long long int, const void*, void*, cudaDataType, int,
                                            long long int, int, cublasComputeType_t, cublasGemmAlgo_t);
#define NEXT_AS(type, function)                                       \
  ([] {                                                               \
    static const auto found = next<type*>(#function, "libcublas.so"); \
    return found;                                                     \
  }())
#define NEXT(function)                                                              \
  ([] {                                                                             \
    static const auto found = next<decltype(&function)>(#function, "libcublas.so"); \
    return found;                                                                   \
  }())
#define NEXT_LT(function)                                                             \
  ([] {                                                                               \
    static const auto found = next<decltype(&function)>(#function, "libcublasLt.so"); \
    return found;                                                                     \
  }())

// ---- the rungs --------------------------------------------------------------------------------------------------------

struct Counts {
  std::atomic<long> rungs{0}, cublas{0}, failed{0};
  ~Counts() {
    if (logs && rungs + cublas > 0)
      std::fprintf(stderr, "gemm_ladder: %ld products by rungs, %ld by cuBLAS, %ld failures\n", rungs.load(),
                   cublas.load(), failed.load());
  }
} counts;

void failed(gemm_ladder_handle_t handle, gemm_ladder_status_t status) {
  if (counts.failed++ == 0)
    std::fprintf(stderr, "gemm_ladder: %s (%s); cuBLAS computes this, and whatever else fails\n",
                 gemm_ladder_last_error(handle), gemm_ladder_status_string(status));
}

/// A handle of the library beside one of cuBLAS's on a device. Threads may share one of cublasLt's.
struct Handle {
  std::mutex mutex;
  gemm_ladder_handle_t handle = nullptr;
};
using Handles = std::map<std::pair<const void*, int>, std::shared_ptr<Handle>>;

// Never destroyed: a program may give back its handles after its other objects are gone.
std::mutex& handles_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}
Handles& handles() {
  static auto* const all = new Handles;
  return *all;
}

std::shared_ptr<Handle> handle_beside(const void* cublas) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return cudaGetLastError(), nullptr;
  const std::lock_guard lock(handles_mutex());
  std::shared_ptr<Handle>& place = handles()[{cublas, device}];
  if (!place) {
    auto made = std::make_shared<Handle>();
    if (const auto status = create_beside_cublas(&made->handle); status != GEMM_LADDER_OK)
      return failed(nullptr, status), nullptr;
    place = made;
  }
  return place;
}

void forget(const void* cublas) {
  std::vector<std::shared_ptr<Handle>> gone;
  {
    const std::lock_guard lock(handles_mutex());
    std::erase_if(handles(), [&](const auto& entry) {
      if (entry.first.first != cublas) return false;
      gone.push_back(entry.second);
      return true;
    });
  }
  for (const auto& one : gone) gemm_ladder_destroy(one->handle);
}

/// A product as cuBLAS is asked for it, by columns.
struct Product {
  gemm_ladder_problem_t problem;
  float alpha, beta;
  const void *a, *b;
  void* c;
};

/// Of three launches on `stream`, the microseconds of the fastest; into a C of its own.
double microseconds(const Product& p, cudaStream_t stream, const std::function<void(void* c)>& launch) {
  const size_t element = p.problem.result == GEMM_LADDER_RESULT_F32 ? 4 : 2;
  const size_t bytes = element * ((p.problem.batch - 1) * p.problem.stride_c + p.problem.n * p.problem.ldc);
  void* c = nullptr;
  cudaEvent_t begin, end;
  if (cudaMalloc(&c, bytes) != cudaSuccess) return cudaGetLastError(), 0;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  float least = 1e30F;
  for (int i = 0; i < 4; ++i) {  // the first one warms up
    float now = 0;
    cudaEventRecord(begin, stream), launch(c), cudaEventRecord(end, stream), cudaEventSynchronize(end);
    cudaEventElapsedTime(&now, begin, end);
    if (i > 0) least = std::min(least, now);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end), cudaFree(c);
  return 1e3 * least;
}

/// A line for a product that was not seen before.
void log(const Product& p, gemm_ladder_handle_t handle, cudaStream_t stream, bool by_rung,
         const std::function<void(void* c)>& cublas) {
  static std::mutex writing;
  static std::set<std::array<int64_t, 14>> seen;
  const gemm_ladder_problem_t& q = p.problem;
  const std::lock_guard lock(writing);
  if (!seen.insert({q.type, q.result, q.op_a, q.op_b, q.m, q.n, q.k, q.lda, q.ldb, q.ldc, q.batch, by_rung}).second)
    return;
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  const bool captured =
      cudaStreamIsCapturing(stream, &capture) == cudaSuccess && capture != cudaStreamCaptureStatusNone;
  static const char* const types[] = {"f32", "tf32", "bf16", "f16"};
  char what[160];
  std::snprintf(what, sizeof what, "gemm_ladder: %s %c%c %lld x %lld x %lld, batch %lld", types[q.type],
                q.op_a ? 't' : 'n', q.op_b ? 't' : 'n', static_cast<long long>(q.m), static_cast<long long>(q.n),
                static_cast<long long>(q.k), static_cast<long long>(q.batch));
  if (!by_rung || captured) {
    std::fprintf(stderr, "%s: %s\n", what, by_rung ? rung_name(q).c_str() : "cuBLAS");
    return;
  }
  const double ours = microseconds(p, stream, [&](void* c) {
    bool done;
    run_beside_cublas(handle, q, p.alpha, p.a, p.b, 0, c, done);
  });
  const double theirs = microseconds(p, stream, cublas);
  std::fprintf(stderr, "%s: %s, %.1f us; cuBLAS %.1f us, %.2f times\n", what, rung_name(q).c_str(), ours, theirs,
               theirs / ours);
}

/// Enqueues the product by a rung, after what `before` enqueues; nothing where cuBLAS is to compute it. `cublas` enqueues it there, into a
/// C of its own, for the log.
std::optional<cublasStatus_t> by_rung(const void* key, cudaStream_t stream, const Product& p,
                                      const std::function<void(void* c)>& cublas,
                                      const std::function<void()>& before = {}) {
  if (stream == cudaStreamPerThread) return {};  // one name for many streams
  const std::shared_ptr<Handle> beside = handle_beside(key);
  if (!beside) return {};
  const std::lock_guard lock(beside->mutex);
  bool done = false;
  auto status = gemm_ladder_set_stream(beside->handle, stream);
  if (status == GEMM_LADDER_OK)
    status = run_beside_cublas(beside->handle, p.problem, p.alpha, p.a, p.b, p.beta, p.c, done, before);
  if (status == GEMM_LADDER_INVALID_VALUE) return {};  // cuBLAS says so itself
  if (status != GEMM_LADDER_OK) {
    failed(beside->handle, status);
    if (done) return CUBLAS_STATUS_EXECUTION_FAILED;  // of a batch some matrices are on their way
  }
  ++(done ? counts.rungs : counts.cublas);
  if (logs) log(p, beside->handle, stream, done, cublas);
  if (done) return CUBLAS_STATUS_SUCCESS;
  return {};
}

std::optional<gemm_ladder_operation_t> operation(cublasOperation_t op) {
  if (op == CUBLAS_OP_N) return GEMM_LADDER_N;
  if (op == CUBLAS_OP_T || op == CUBLAS_OP_C) return GEMM_LADDER_T;  // of real matrices
  return {};
}

/// How operands of cudaDataType_t are multiplied under a compute type and a handle's math mode; empty where no rung does.
std::optional<gemm_ladder_type_t> type_of(cudaDataType_t a, cudaDataType_t b, cublasComputeType_t compute,
                                          cublasMath_t math) {
  if (a != b) return {};
  if (a == CUDA_R_32F) {
    static const char* const no_tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");  // cuBLAS obeys it
    const auto tf32 = no_tf32 && std::strcmp(no_tf32, "0") == 0 ? GEMM_LADDER_F32 : GEMM_LADDER_TF32;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return tf32;
    if (compute == CUBLAS_COMPUTE_32F_PEDANTIC) return GEMM_LADDER_F32;
    if (compute != CUBLAS_COMPUTE_32F) return {};
    return (math & 0xF) == CUBLAS_TF32_TENSOR_OP_MATH ? tf32 : GEMM_LADDER_F32;
  }
  if (compute != CUBLAS_COMPUTE_32F || (math & 0xF) == CUBLAS_PEDANTIC_MATH) return {};
  if (a == CUDA_R_16BF) return GEMM_LADDER_BF16;
  if (a == CUDA_R_16F) return GEMM_LADDER_F16;
  return {};
}

/// A call of cublasGemmStridedBatchedEx or of a special case of it.
struct Call {
  cublasHandle_t handle;
  cublasOperation_t op_a, op_b;
  int64_t m, n, k;
  const void* alpha;
  const void* a;
  cudaDataType_t type_a;
  int64_t lda, stride_a;
  const void* b;
  cudaDataType_t type_b;
  int64_t ldb, stride_b;
  const void* beta;
  void* c;
  cudaDataType_t type_c;
  int64_t ldc, stride_c, batch;
  cublasComputeType_t compute;
};

/// Likewise.
std::optional<cublasStatus_t> by_rung(const Call& call) {
  try {
    if (off || !call.handle || !call.alpha || !call.beta) return {};
    int sms = 0;  // fewer than all, for kernels beside it
    cublasPointerMode_t mode;
    cublasMath_t math;
    cudaStream_t stream;
    if (NEXT(cublasGetSmCountTarget)(call.handle, &sms) != CUBLAS_STATUS_SUCCESS || sms != 0 ||
        NEXT(cublasGetPointerMode_v2)(call.handle, &mode) != CUBLAS_STATUS_SUCCESS ||
        mode != CUBLAS_POINTER_MODE_HOST || NEXT(cublasGetMathMode)(call.handle, &math) != CUBLAS_STATUS_SUCCESS ||
        NEXT(cublasGetStream_v2)(call.handle, &stream) != CUBLAS_STATUS_SUCCESS)
      return {};
    const auto type = type_of(call.type_a, call.type_b, call.compute, math);
    const auto op_a = operation(call.op_a), op_b = operation(call.op_b);
    if (!type || !op_a || !op_b || !takes(*type)) return {};
    if (call.type_c != CUDA_R_32F && call.type_c != call.type_a) return {};
    const Product p{
        {GEMM_LADDER_COL_MAJOR, *type, call.type_c == CUDA_R_32F ? GEMM_LADDER_RESULT_F32 : GEMM_LADDER_RESULT_SAME,
         *op_a, *op_b, call.m, call.n, call.k, call.lda, call.ldb, call.ldc, call.batch, call.stride_a, call.stride_b,
         call.stride_c, GEMM_LADDER_SCALES_NONE, 0},
        *static_cast<const float*>(call.alpha),
        *static_cast<const float*>(call.beta),
        call.a,
        call.b,
        call.c};
    return by_rung(call.handle, stream, p, [&](void* c) {
      const float zero = 0;
      NEXT(cublasGemmStridedBatchedEx_64)
      (call.handle, call.op_a, call.op_b, call.m, call.n, call.k, call.alpha, call.a, call.type_a, call.lda,
       call.stride_a, call.b, call.type_b, call.ldb, call.stride_b, &zero, c, call.type_c, call.ldc, call.stride_c,
       call.batch, call.compute, CUBLAS_GEMM_DEFAULT);
    });
  } catch (...) {  // nothing of ours takes the program down
    return {};
  }
}

/// Of cublasSgemm in its forms: one matrix, or a batch with strides.
std::optional<cublasStatus_t> sgemm_by_rung(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                            int64_t m, int64_t n, int64_t k, const float* alpha, const float* a,
                                            int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                            int64_t stride_b, const float* beta, float* c, int64_t ldc,
                                            int64_t stride_c, int64_t batch) {
  return by_rung({handle, op_a,       op_b, m,        n,    k, alpha,      a,   CUDA_R_32F, lda,   stride_a,
                  b,      CUDA_R_32F, ldb,  stride_b, beta, c, CUDA_R_32F, ldc, stride_c,   batch, CUBLAS_COMPUTE_32F});
}

// ---- cublasLtMatmul ---------------------------------------------------------------------------------------------------

template <class T>
bool get(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, T& value) {
  size_t written = 0;
  return NEXT_LT(cublasLtMatmulDescGetAttribute)(desc, what, &value, sizeof value, &written) == CUBLAS_STATUS_SUCCESS;
}
template <class T>
bool get(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, T& value) {
  size_t written = 0;
  return NEXT_LT(cublasLtMatrixLayoutGetAttribute)(layout, what, &value, sizeof value, &written) ==
         CUBLAS_STATUS_SUCCESS;
}

struct LtMatrix {
  uint32_t type;
  int32_t order, batch;
  uint64_t rows, columns;
  int64_t ld, stride;

  bool read(cublasLtMatrixLayout_t layout) {
#if CUBLAS_VERSION >= 130000
    uint32_t pointers = 0;  // an array of pointers in place of a matrix
    if (get(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, pointers) && pointers != 0) return false;
#endif
    return get(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type) && get(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, order) &&
           get(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows) && get(layout, CUBLASLT_MATRIX_LAYOUT_COLS, columns) &&
           get(layout, CUBLASLT_MATRIX_LAYOUT_LD, ld) && get(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch) &&
           get(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride) && order == CUBLASLT_ORDER_COL;
  }
};

/// A call of cublasLtMatmul.
struct LtCall {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t desc;
  const void* alpha;
  const void* a;
  cublasLtMatrixLayout_t layout_a;
  const void* b;
  cublasLtMatrixLayout_t layout_b;
  const void* beta;
  const void* c;
  cublasLtMatrixLayout_t layout_c;
  void* d;
  cublasLtMatrixLayout_t layout_d;
  const cublasLtMatmulAlgo_t* algorithm;
  void* workspace;
  size_t workspace_bytes;
  cudaStream_t stream;

  cublasStatus_t to_cublas(const void* c_now, void* d_now) const {
    return NEXT_LT(cublasLtMatmul)(handle, desc, alpha, a, layout_a, b, layout_b, beta, c_now, layout_c, d_now,
                                   layout_d, algorithm, workspace, workspace_bytes, stream);
  }
};

/// What PyTorch's Linear asks for in FP32: by columns, one matrix, its epilogue none or a bias per row of D. The bias goes into D first,
/// and the product is added to it.
std::optional<cublasStatus_t> by_rung(const LtCall& call) {
  const cublasLtMatmulDesc_t desc = call.desc;
  if (off || !desc || !call.alpha || !call.beta || !call.d) return {};
  int32_t compute, scale, mode, op_a, op_b, fill = CUBLAS_FILL_MODE_FULL, sms = 0;
  uint32_t epilogue;
  LtMatrix x, y, z;
  if (!get(desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, compute) || !get(desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, scale) ||
      !get(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, mode) || !get(desc, CUBLASLT_MATMUL_DESC_TRANSA, op_a) ||
      !get(desc, CUBLASLT_MATMUL_DESC_TRANSB, op_b) || !get(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) ||
      !x.read(call.layout_a) || !y.read(call.layout_b) || !z.read(call.layout_d))
    return {};
  const bool adds_bias = epilogue == CUBLASLT_EPILOGUE_BIAS;
  if ((!adds_bias && epilogue != CUBLASLT_EPILOGUE_DEFAULT) || scale != CUDA_R_32F ||
      mode != CUBLASLT_POINTER_MODE_HOST)
    return {};
  if (x.type != CUDA_R_32F || z.type != CUDA_R_32F || x.batch != 1 || y.batch != 1 || z.batch != 1) return {};
  if ((get(desc, CUBLASLT_MATMUL_DESC_FILL_MODE, fill) && fill != CUBLAS_FILL_MODE_FULL) ||
      (get(desc, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, sms) && sms != 0))
    return {};
  for (const auto what : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                          CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER,
                          CUBLASLT_MATMUL_DESC_AMAX_D_POINTER}) {
    const void* pointer = nullptr;
    if (get(desc, what, pointer) && pointer) return {};
  }
  const void* bias = nullptr;
  int32_t bias_type = -1;
  if (adds_bias &&
      (!get(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias) || !bias ||
       (get(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type) && bias_type != -1 && bias_type != CUDA_R_32F)))
    return {};
  const auto type = type_of(static_cast<cudaDataType_t>(x.type), static_cast<cudaDataType_t>(y.type),
                            static_cast<cublasComputeType_t>(compute), CUBLAS_DEFAULT_MATH);
  const auto first = operation(static_cast<cublasOperation_t>(op_a)),
             second = operation(static_cast<cublasOperation_t>(op_b));
  const float beta = *static_cast<const float*>(call.beta);
  if (!type || !first || !second || !takes(*type)) return {};
  if (beta != 0.0F) {  // then C is D
    LtMatrix w;
    if (adds_bias || call.c != call.d || !w.read(call.layout_c) || w.type != z.type || w.ld != z.ld ||
        w.rows != z.rows || w.columns != z.columns || w.batch != 1)
      return {};
  }
  const auto size = [](gemm_ladder_operation_t op, const LtMatrix& matrix) {
    return op == GEMM_LADDER_N ? std::pair(matrix.rows, matrix.columns) : std::pair(matrix.columns, matrix.rows);
  };
  const auto [m, k] = size(*first, x);
  const auto [k_of_b, n] = size(*second, y);
  if (m != z.rows || n != z.columns || k != k_of_b) return {};  // cuBLAS says so
  const Product p{
      {GEMM_LADDER_COL_MAJOR, *type, GEMM_LADDER_RESULT_F32, *first, *second, static_cast<int64_t>(m),
       static_cast<int64_t>(n), static_cast<int64_t>(k), x.ld, y.ld, z.ld, 1, 0, 0, 0, GEMM_LADDER_SCALES_NONE, 0},
      *static_cast<const float*>(call.alpha),
      adds_bias ? 1.0F : beta,
      call.a,
      call.b,
      call.d};
  std::function<void()> before;
  if (adds_bias)
    before = [&] {
      fill_columns(static_cast<const float*>(bias), static_cast<float*>(call.d), p.problem.m, p.problem.n, z.ld,
                   call.stream);
    };
  return by_rung(
      call.handle, call.stream, p, [&](void* other) { call.to_cublas(other, other); }, before);
}

}  // namespace

// ---- the functions that stand in --------------------------------------------------------------------------------------

#pragma GCC visibility push(default)
extern "C" {

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  if (const auto status = sgemm_by_rung(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1))
    return *status;
  return NEXT(cublasSgemm_v2)(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasSgemm_v2_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m,
                                 int64_t n, int64_t k, const float* alpha, const float* a, int64_t lda, const float* b,
                                 int64_t ldb, const float* beta, float* c, int64_t ldc) {
  if (const auto status = sgemm_by_rung(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1))
    return *status;
  return NEXT(cublasSgemm_v2_64)(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda,
                                         long long int stride_a, const float* b, int ldb, long long int stride_b,
                                         const float* beta, float* c, int ldc, long long int stride_c, int batch) {
  if (const auto status = sgemm_by_rung(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c,
                                        ldc, stride_c, batch))
    return *status;
  return NEXT(cublasSgemmStridedBatched)(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta,
                                         c, ldc, stride_c, batch);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm) {
  if (const auto status = by_rung({handle, op_a,   op_b, m, n,    k, alpha,  a,   type_a, lda, 0,
                                   b,      type_b, ldb,  0, beta, c, type_c, ldc, 0,      1,   compute}))
    return *status;
  return NEXT_AS(GemmEx, cublasGemmEx)(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c,
                                       type_c, ldc, compute, algorithm);
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                          int n, int k, const void* alpha, const void* a, cudaDataType type_a, int lda,
                                          long long int stride_a, const void* b, cudaDataType type_b, int ldb,
                                          long long int stride_b, const void* beta, void* c, cudaDataType type_c,
                                          int ldc, long long int stride_c, int batch, cublasComputeType_t compute,
                                          cublasGemmAlgo_t algorithm) {
  if (const auto status = by_rung({handle, op_a,   op_b, m,        n,    k, alpha,  a,   type_a,   lda,   stride_a,
                                   b,      type_b, ldb,  stride_b, beta, c, type_c, ldc, stride_c, batch, compute}))
    return *status;
  return NEXT_AS(GemmStridedBatchedEx, cublasGemmStridedBatchedEx)(handle, op_a, op_b, m, n, k, alpha, a, type_a, lda,
                                                                   stride_a, b, type_b, ldb, stride_b, beta, c, type_c,
                                                                   ldc, stride_c, batch, compute, algorithm);
}

/// From now on everything goes to cuBLAS (1), or no longer (0): for programs that compare.
void gemm_ladder_blas_off(int now) { off = now != 0; }

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  forget(handle);
  return NEXT(cublasDestroy_v2)(handle);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t layout_a, const void* b, cublasLtMatrixLayout_t layout_b,
                              const void* beta, const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  const LtCall call = {handle, desc,     alpha, a,        layout_a,  b,         layout_b,        beta,
                       c,      layout_c, d,     layout_d, algorithm, workspace, workspace_bytes, stream};
  try {
    if (const auto status = by_rung(call)) return *status;
  } catch (...) {  // nothing of ours takes the program down
  }
  return call.to_cublas(c, d);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  forget(handle);
  return NEXT_LT(cublasLtDestroy)(handle);
}

}  // extern "C"
#pragma GCC visibility pop
