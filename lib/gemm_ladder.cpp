// The C interface: from a call to a launch. A call is looked up among those of the handle; the first of its kind is planned: which kernel,
// with how much workspace, and everything about its launch that does not change.
#include "include/gemm_ladder.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/cuda_error.h"
#include "common/rung.h"
#include "common/scales.h"
#include "common/types.h"
#include "lib/cublas.h"
#include "lib/internal.h"
#include "lib/plain.h"
#include "lib/quantise.h"

using namespace ladder;

namespace {

/// An argument is wrong.
struct InvalidValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Some matrices of a batch were enqueued, and then a launch failed: nobody may begin anew.
struct Partly : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct CublasFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void cublas_check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw CublasFailed(std::string(call) + " returned status " + std::to_string(status));
}

Type type_of(gemm_ladder_type_t type) {
  switch (type) {
    case GEMM_LADDER_F32:
      return Type::f32;
    case GEMM_LADDER_TF32:
      return Type::tf32;
    case GEMM_LADDER_BF16:
      return Type::bf16;
    case GEMM_LADDER_F16:
      return Type::f16;
    case GEMM_LADDER_E4M3:
      return Type::e4m3;
  }
  throw InvalidValue("type is none of gemm_ladder_type_t");
}

Scales scales_of(gemm_ladder_scales_t scales) {
  switch (scales) {
    case GEMM_LADDER_SCALES_NONE:
      return Scales::none;
    case GEMM_LADDER_SCALES_TENSOR:
      return Scales::tensor;
    case GEMM_LADDER_SCALES_ROWS:
      return Scales::rows;
    case GEMM_LADDER_SCALES_BLOCKS:
      return Scales::blocks;
  }
  throw InvalidValue("scales is none of gemm_ladder_scales_t");
}

Block block_of(gemm_ladder_scale_t scales) {
  switch (scales) {
    case GEMM_LADDER_SCALE_ALL:
      return Block::all;
    case GEMM_LADDER_SCALE_ROWS:
      return Block::row;
    case GEMM_LADDER_SCALE_1X128:
      return Block::row_128;
    case GEMM_LADDER_SCALE_128X128:
      return Block::square;
  }
  throw InvalidValue("scales is none of gemm_ladder_scale_t");
}

/// A batch of products in the words of the rungs: row-major.
struct Batch {
  Problem problem;  // of the first matrices; without pointers
  int64_t count, stride_a, stride_b, stride_c;
};

/// Throws InvalidValue, naming the argument.
Batch batch_of(const gemm_ladder_problem_t& asked) {
  gemm_ladder_problem_t p = asked;
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidValue(what);
  };
  require(p.order == GEMM_LADDER_ROW_MAJOR || p.order == GEMM_LADDER_COL_MAJOR, "order is none of gemm_ladder_order_t");
  require(p.op_a == GEMM_LADDER_N || p.op_a == GEMM_LADDER_T, "op_a is none of gemm_ladder_operation_t");
  require(p.op_b == GEMM_LADDER_N || p.op_b == GEMM_LADDER_T, "op_b is none of gemm_ladder_operation_t");
  require(p.result == GEMM_LADDER_RESULT_F32 || p.result == GEMM_LADDER_RESULT_SAME,
          "result is none of gemm_ladder_result_t");
  require(p.m >= 0 && p.n >= 0 && p.k >= 0, "m, n and k must be at least 0");
  require(p.m <= INT_MAX && p.n <= INT_MAX && p.k <= INT_MAX, "m, n and k must be below 2^31");
  require(p.lda <= INT_MAX && p.ldb <= INT_MAX && p.ldc <= INT_MAX, "leading dimensions must be below 2^31");
  require(p.batch >= 0, "batch must be at least 0");
  require(p.groups >= 0 && p.groups <= INT_MAX, "groups must be at least 0, and below 2^31");
  const Scales scales = scales_of(p.scales);
  require(scales == Scales::none || p.type == GEMM_LADDER_E4M3, "scales are for GEMM_LADDER_E4M3");
  if (scales != Scales::none || p.groups > 0) {
    require(p.order == GEMM_LADDER_ROW_MAJOR && p.op_a == GEMM_LADDER_N && p.op_b == GEMM_LADDER_T,
            "a product with scales or groups is row-major, with op_a N and op_b T");
    require(p.batch == 1, "a product with scales or groups has batch 1");
  }
  // By columns C is stored as its transpose is by rows, and (A B)^T is B^T A^T.
  if (p.order == GEMM_LADDER_COL_MAJOR) {
    std::swap(p.m, p.n);
    std::swap(p.op_a, p.op_b);
    std::swap(p.lda, p.ldb);
    std::swap(p.stride_a, p.stride_b);
  }
  const bool swapped = p.order == GEMM_LADDER_COL_MAJOR;
  const int64_t columns_a = p.op_a == GEMM_LADDER_N ? p.k : p.m, columns_b = p.op_b == GEMM_LADDER_N ? p.n : p.k;
  const char* const first =
      swapped ? "ldb is smaller than a stored row or column of B" : "lda is smaller than a stored row or column of A";
  const char* const second =
      swapped ? "lda is smaller than a stored row or column of A" : "ldb is smaller than a stored row or column of B";
  require(p.lda >= std::max<int64_t>(1, columns_a), first);
  require(p.ldb >= std::max<int64_t>(1, columns_b), second);
  require(p.ldc >= std::max<int64_t>(1, p.n), "ldc is smaller than a stored row or column of C");
  Batch batch{};
  Problem& q = batch.problem;
  q.m = static_cast<int>(p.m), q.n = static_cast<int>(p.n), q.k = static_cast<int>(p.k);
  q.lda = static_cast<int>(p.lda), q.ldb = static_cast<int>(p.ldb), q.ldc = static_cast<int>(p.ldc);
  q.type = type_of(p.type), q.out = p.result == GEMM_LADDER_RESULT_F32 ? Out::f32 : Out::same;
  if (operand_bytes(q.type) == 4) q.out = Out::f32;
  q.layout_a = p.op_a == GEMM_LADDER_N ? MatrixLayout::row_major : MatrixLayout::col_major;
  q.layout_b = p.op_b == GEMM_LADDER_N ? MatrixLayout::row_major : MatrixLayout::col_major;
  q.scales = scales, q.groups = static_cast<int>(p.groups);
  batch.count = p.batch, batch.stride_a = p.stride_a, batch.stride_b = p.stride_b, batch.stride_c = p.stride_c;
  return batch;
}

// ---- which kernel -----------------------------------------------------------------------------------------------------

/// Whether this library was made of one rung, for people to try it with: it computes by this rung or not at all.
bool is_one_rung() { return rungs().size() == 1; }

bool takes_layouts(const Rung& rung, const Problem& p) {
  return rung.any_layout || (p.layout_a == MatrixLayout::row_major && p.layout_b == rung.layout_b);
}

/// The first rung of this library that computes this type, with these scales and groups, in these layouts; where there is none, the first
/// that computes it in others; null where there is none of these, either.
const Rung* rung_for(const Problem& p) {
  const auto has = [](const auto& all, auto one) { return std::find(all.begin(), all.end(), one) != all.end(); };
  const Rung* in_others = nullptr;
  for (const Rung& rung : rungs()) {
    if (!has(rung.types, p.type) || !has(rung.scales, p.scales) || (p.groups > 0 && !rung.grouped)) continue;
    if (takes_layouts(rung, p)) return &rung;
    if (!in_others) in_others = &rung;
  }
  return in_others;
}

std::string no_rung(const Problem& p) {
  return "this library has no rung for " + name(p.type) +
         (p.scales == Scales::none ? "" : std::string(" with scales (") + name(p.scales) + ")") +
         (p.groups == 0 ? "" : " in groups");
}

// ---- operands transposed first ----------------------------------------------------------------------------------------

/// Which operands of a product are transposed by a kernel of its own. The rung for TF32 takes the layout nt alone: A by rows of K elements,
/// and B, too.
struct Transposed {
  bool a, b;
  explicit operator bool() const { return a || b; }
};

Transposed transposed_first(const Problem& p) {
  if (is_one_rung() || p.type != Type::tf32) return {};
  return {p.layout_a != MatrixLayout::row_major, p.layout_b == MatrixLayout::row_major};
}

/// The leading dimension of an operand that was transposed: whole units of 16 bytes.
int whole_row(const Problem& p) { return (p.k + 3) / 4 * 4; }

size_t transposed_bytes(const Problem& p, Transposed first) {
  const size_t rows = (first.a ? static_cast<size_t>(p.m) : 0) + (first.b ? static_cast<size_t>(p.n) : 0);
  return sizeof(float) * rows * whole_row(p);
}

/// The product that is left for the rung. Its transposed operands lie in p.workspace, A before B.
Problem with_transposed(Problem p, Transposed first) {
  auto* to = static_cast<float*>(p.workspace);
  if (first.a) {
    p.a = to, p.lda = whole_row(p), p.layout_a = MatrixLayout::row_major;
    to += static_cast<size_t>(p.m) * p.lda;
  }
  if (first.b) p.b = to, p.ldb = whole_row(p), p.layout_b = MatrixLayout::col_major;
  return p;
}

void transpose_operands(const Problem& p, Transposed first) {
  const Problem q = with_transposed(p, first);
  if (first.a) transpose(p.A<float>(), p.k, p.m, p.lda, const_cast<float*>(q.A<float>()), q.lda, p.stream);
  if (first.b) transpose(p.B<float>(), p.k, p.n, p.ldb, const_cast<float*>(q.B<float>()), q.ldb, p.stream);
}

/// Whether cuBLAS is slower in this layout, by more than the transposing takes. Measured on an H100 with TF32: tn 1.05 to 1.58 where true,
/// one operand 1.03 to 1.32; where false, down to 0.54.
bool transposing_pays(const Problem& p, Transposed first) {
  if (transposed_bytes(p, first) > 1e9) return false;
  if (first.a && first.b) return std::min(p.m, p.n) >= 1024 && p.k >= 256;
  // The bytes of A beside the work are 1 / n, those of B 1 / m.
  if (first.b) return p.m >= 3000 && p.k <= 2048;
  return p.n >= 3000 && (p.k <= 1024 || p.n / 8 >= p.m);
}

std::string explain_transposed(Transposed first) {
  if (!first) return "";
  return first.a && first.b ? "A and B are transposed first\n"
         : first.a          ? "A is transposed first\n"
                            : "B is transposed first\n";
}

// ---- which kernel computes it ------------------------------------------------------------------------------------------

bool is_aligned(const void* pointer, int bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

/// Why the rung for this product does not compute it here; empty where it does. `p` with its pointers, `count` such products.
std::string why_not(const Problem& p, const Batch& batch) {
  const Rung* const found = rung_for(p);
  if (!found) return no_rung(p);
  const Rung& rung = *found;
  const DeviceLimits card = device_limits();
  if (std::string reason = why_not_on(rung.arch, card.sm); !reason.empty()) return reason;
  const Transposed first = transposed_first(p);
  if (!first && !takes_layouts(rung, p))
    return std::string("this rung takes the layout ") + (rung.layout_b == MatrixLayout::row_major ? "nn" : "nt");
  const int bytes = rung.row_align_bytes, operand = operand_bytes(p.type), result = result_bytes(p.type, p.out);
  const auto rows_aligned = [&](const void* pointer, int64_t ld, int64_t stride, int element) {
    return is_aligned(pointer, bytes) && ld * element % bytes == 0 &&
           (batch.count == 1 || stride * element % bytes == 0);
  };
  if (!rows_aligned(p.a, p.lda, batch.stride_a, operand) || !rows_aligned(p.b, p.ldb, batch.stride_b, operand) ||
      !rows_aligned(p.c, p.ldc, batch.stride_c, result))
    return "rows do not begin at multiples of " + std::to_string(bytes) + " bytes";
  if (p.scales == Scales::blocks && (!is_aligned(p.scale_a, 16) || !is_aligned(p.scale_b, 16)))
    return "scales do not begin at multiples of 16 bytes";
  return rung.refuses(with_transposed(p, first));
}

/// Whether cublasGemmStridedBatchedEx() computes it at all.
bool cublas_computes(const Problem& p) { return p.type != Type::e4m3 && p.groups == 0; }

/// Why cuBLAS is the faster one for a product that the rung could compute; empty where it is not.
std::string why_cublas(const Problem& p, const Batch& batch) {
  if (!cublas_computes(p)) return "";
  const int sms = device_limits().sms;
  if (batch.count > 1 && static_cast<int64_t>(p.m) * p.n < 32768LL * sms)
    return "of a batch cuBLAS computes all matrices in one launch, and one of these does not fill the GPU";
  const bool a_stored = p.layout_a == MatrixLayout::row_major, b_stored = p.layout_b == MatrixLayout::row_major;
  if ((p.type == Type::bf16 || p.type == Type::f16) && !a_stored && b_stored && std::min(p.m, p.n) <= 128)
    return "C is narrow, and the layout is tn";  // 0.76 and 0.86 of cuBLAS at 128 x 4096 x 4096 and 4096 x 128 x 4096
  if (const Transposed first = transposed_first(p); first && !transposing_pays(p, first))
    return "to transpose its operands first takes longer than is gained";
  return "";
}

// ---- the handle -------------------------------------------------------------------------------------------------------

/// While this lives, this thread may allocate and wait although some thread captures a stream.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Device memory that grows, for the kernels of one stream or of one capture. What a graph may use is not freed when it grows.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// At least so many bytes, zero at first. Throws CudaError.
  void* get(size_t bytes, bool zeroed, cudaStream_t stream, bool capturing) {
    if (bytes > size_) {
      const RelaxedCapture relaxed;
      const size_t grown = std::max(bytes, size_ + size_ / 2);
      if (!blocks_.empty() && !capturing) {
        cuda_check(cudaStreamSynchronize(stream));  // a kernel may be using it
        free();
      }
      void* block = nullptr;
      cuda_check(cudaMalloc(&block, grown));
      blocks_.push_back(block);
      if (zeroed) cuda_check(cudaMemsetAsync(block, 0, grown, stream));  // in a capture a node of the graph
      size_ = grown;
    }
    return blocks_.empty() ? nullptr : blocks_.back();
  }

  void free() {
    for (void* const block : blocks_) cudaFree(block);
    blocks_.clear();
    size_ = 0;
  }

 private:
  std::vector<void*> blocks_;
  size_t size_ = 0;  // of the last block
};

/// What kernels on one stream use, or those of one capture: others may run at the same time.
struct StreamMemory {
  Memory workspace, locks;
};

/// A call that was planned.
struct Call {
  std::function<void(const Problem&)> launch;  // null: cuBLAS, or where it cannot the plain kernel
  size_t workspace_bytes = 0, lock_bytes = 0;
};

/// All of a call that its plan and its launch depend on.
struct Key {
  std::array<int64_t, 16> words;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (const int64_t word : key.words)
      hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15ULL, hash ^= hash >> 29;
    return hash;
  }
};

Key key_of(const Problem& p, const Batch& batch) {
  const auto address = [](const void* pointer) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(pointer)); };
  const int64_t what = static_cast<int64_t>(p.type) | static_cast<int64_t>(p.out) << 8 |
                       static_cast<int64_t>(p.layout_a) << 16 | static_cast<int64_t>(p.layout_b) << 20 |
                       static_cast<int64_t>(p.scales) << 24 | static_cast<int64_t>(p.groups) << 32;
  return {{what, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, batch.count, batch.stride_a, batch.stride_b, batch.stride_c,
           address(p.a), address(p.b), address(p.c), address(p.scale_a), address(p.scale_b)}};
}

constexpr size_t MOST_CALLS = 4096;  // that a handle remembers

}  // namespace

struct gemm_ladder_context {
  int device = 0;
  cudaStream_t stream = nullptr;
  void* own_workspace = nullptr;  // the caller's
  size_t own_bytes = 0;
  std::map<std::pair<cudaStream_t, unsigned long long>, StreamMemory> memory;  // and the number of the capture, or 0
  std::unordered_map<Key, Call, KeyHash> calls;
  cublasHandle_t cublas = nullptr;
  bool beside_cublas = false;  // the caller has one: what this handle's would compute is left to it
  std::string error;

  /// Waits for the work on the device, which is current, and gives everything back; but what graphs use only where the caller was told
  /// that they must not be launched any more.
  void finish() {
    const RelaxedCapture relaxed;
    cudaDeviceSynchronize();
    for (auto& [key, of_stream] : memory) {
      if (key.second != 0 && beside_cublas) continue;
      of_stream.workspace.free(), of_stream.locks.free();
    }
    if (cublas) cublas_functions()->destroy(cublas);
    cublas = nullptr;
  }

  Call plan(const Problem& p, const Batch& batch) const {
    if (const std::string reason = why_not(p, batch); !reason.empty()) {
      const Rung* const rung = rung_for(p);
      if (is_one_rung()) throw InvalidValue((rung ? rung->stem() + ": " : "") + reason);
      return {};
    }
    if ((cublas || beside_cublas) && !why_cublas(p, batch).empty()) return {};
    const Rung& rung = *rung_for(p);
    const Transposed first = transposed_first(p);
    const Problem left = with_transposed(p, first);
    const Resources resources = rung.resources(left);
    const size_t own = (resources.workspace_bytes + 255) / 256 * 256, locks = resources.locks * sizeof(unsigned);
    std::function<void(const Problem&)> launch = rung.prepare ? rung.prepare(left) : rung.launch;
    if (!first) return {launch, own, locks};
    return {[launch, first, own](Problem p) {
              void* const workspace = p.workspace;
              p.workspace = static_cast<char*>(workspace) + own;
              transpose_operands(p, first);
              p = with_transposed(p, first);
              p.workspace = workspace;
              launch(p);
            },
            own + transposed_bytes(p, first), locks};
  }

  /// False where nothing was done: the caller's cuBLAS is to compute it.
  /// `before` enqueues what comes first, where something is done.
  bool run(const Batch& batch, const gemm_ladder_operands_t& x, const std::function<void()>& before);
  void run_cublas(const Problem& p, const Batch& batch) const;
};

void gemm_ladder_context::run_cublas(const Problem& p, const Batch& batch) const {
  const CublasFunctions* const functions = cublas_functions();
  cublas_check(functions->set_stream(cublas, stream), "cublasSetStream");
  const cudaDataType_t operand = facts(p.type).cuda,
                       result = p.out == Out::f32 ? CUDA_R_32F
                                                  : facts(p.type).cuda_result;  // by columns: B^T is the first operand
  const auto operation = [](MatrixLayout layout) {
    return layout == MatrixLayout::row_major ? CUBLAS_OP_N : CUBLAS_OP_T;
  };
  const cublasComputeType_t compute = p.type == Type::f32    ? CUBLAS_COMPUTE_32F_PEDANTIC
                                      : p.type == Type::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                             : CUBLAS_COMPUTE_32F;
  cublas_check(functions->gemm(cublas, operation(p.layout_b), operation(p.layout_a), p.n, p.m, p.k, &p.alpha, p.b,
                               operand, p.ldb, batch.stride_b, p.a, operand, p.lda, batch.stride_a, &p.beta, p.c,
                               result, p.ldc, batch.stride_c, batch.count, compute, CUBLAS_GEMM_DEFAULT),
               "cublasGemmStridedBatchedEx");
}

bool gemm_ladder_context::run(const Batch& batch, const gemm_ladder_operands_t& x,
                              const std::function<void()>& before) {
  Problem p = batch.problem;
  p.alpha = x.alpha, p.beta = x.beta, p.a = x.a, p.b = x.b, p.c = x.c, p.stream = stream;
  p.scale_a = x.scale_a, p.scale_b = x.scale_b, p.first_row = x.first_row;
  if (p.m == 0 || p.n == 0 || batch.count == 0) return true;
  if (!p.c) throw InvalidValue("C is a null pointer");
  const auto each = [&](auto&& f) {
    const size_t operand = operand_bytes(p.type), result = result_bytes(p.type, p.out);
    for (int64_t i = 0; i < batch.count; ++i) {
      Problem q = p;
      q.a = static_cast<const char*>(p.a) + i * batch.stride_a * operand;
      q.b = static_cast<const char*>(p.b) + i * batch.stride_b * operand;
      q.c = static_cast<char*>(p.c) + i * batch.stride_c * result;
      f(q);
    }
  };
  if (p.k == 0 || p.alpha == 0.0F) {
    if (before) before();
    if (p.beta != 1.0F) each(scale_c);
    return true;
  }
  if (!p.a || !p.b) throw InvalidValue(p.a ? "B is a null pointer" : "A is a null pointer");
  if (p.scales != Scales::none && (!p.scale_a || !p.scale_b))
    throw InvalidValue(p.scale_a ? "scale_b is a null pointer" : "scale_a is a null pointer");
  if (p.groups > 0 && !p.first_row) throw InvalidValue("first_row is a null pointer");

  const Key key = key_of(p, batch);
  auto known = calls.find(key);
  if (known == calls.end()) {
    if (calls.size() >= MOST_CALLS) calls.clear();
    known = calls.emplace(key, plan(p, batch)).first;
  }
  const Call& call = known->second;
  if (call.launch) {
    if (call.workspace_bytes || call.lock_bytes) {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      unsigned long long capture = 0;
      cuda_check(cudaStreamGetCaptureInfo(stream, &status, &capture));
      const bool capturing = status != cudaStreamCaptureStatusNone;
      StreamMemory& own = memory[{stream, capturing ? capture : 0}];
      const bool callers = own_workspace && call.workspace_bytes <= own_bytes;
      p.workspace = callers ? own_workspace : own.workspace.get(call.workspace_bytes, false, stream, capturing);
      p.locks = static_cast<unsigned*>(own.locks.get(call.lock_bytes, true, stream, capturing));
    }
    if (before) before();
    bool enqueued = false;
    try {
      each([&](Problem q) {
        q.workspace = p.workspace, q.locks = p.locks;
        call.launch(q);
        enqueued = true;
      });
    } catch (const CudaError& error) {
      if (enqueued) throw Partly(error.what());
      throw;
    }
    return true;
  }
  if (beside_cublas) return false;
  if (cublas && cublas_computes(p))
    run_cublas(p, batch);
  else
    each(plain_gemm);
  return true;
}

namespace {

/// f() for a handle: what it throws becomes a status, and its words the handle's last error.
template <class F>
gemm_ladder_status_t guarded(gemm_ladder_handle_t handle, F&& f) noexcept {
  if (!handle) return GEMM_LADDER_INVALID_VALUE;
  const auto failed = [&](gemm_ladder_status_t status, const char* what) {
    try {
      handle->error = what;
    } catch (...) {  // no memory for the text
    }
    return status;
  };
  try {
    f();
    return GEMM_LADDER_OK;
  } catch (const InvalidValue& error) {
    return failed(GEMM_LADDER_INVALID_VALUE, error.what());
  } catch (const CublasFailed& error) {
    return failed(GEMM_LADDER_CUBLAS_ERROR, error.what());
  } catch (const CudaError& error) {
    const bool memory = error.status == cudaErrorMemoryAllocation;
    cudaGetLastError();  // it is told here: nobody else shall find it
    return failed(memory ? GEMM_LADDER_OUT_OF_MEMORY : GEMM_LADDER_CUDA_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return failed(GEMM_LADDER_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& error) {
    return failed(GEMM_LADDER_CUDA_ERROR, error.what());
  } catch (...) {
    return failed(GEMM_LADDER_CUDA_ERROR, "an unknown error");
  }
}

/// The handle's device is current while this lives.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    cuda_check(cudaGetDevice(&before_));
    if (before_ != device) cuda_check(cudaSetDevice(device));
    changed_ = before_ != device;
  }
  ~OnDevice() {
    if (changed_) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace

namespace {

gemm_ladder_status_t create(gemm_ladder_handle_t* handle, bool beside_cublas) {
  if (!handle) return GEMM_LADDER_INVALID_VALUE;
  *handle = nullptr;
  auto* const context = new (std::nothrow) gemm_ladder_context;
  if (!context) return GEMM_LADDER_OUT_OF_MEMORY;
  context->beside_cublas = beside_cublas;
  const gemm_ladder_status_t status = guarded(context, [&] {
    cuda_check(cudaGetDevice(&context->device));
    device_limits();
    const CublasFunctions* const functions = beside_cublas || is_one_rung() ? nullptr : cublas_functions();
    if (!functions) return;
    cublas_check(functions->create(&context->cublas), "cublasCreate");
    cublas_check(functions->set_math_mode(context->cublas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
                 "cublasSetMathMode");
  });
  if (status == GEMM_LADDER_OK)
    *handle = context;
  else
    delete context;
  return status;
}

gemm_ladder_status_t run(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem, gemm_ladder_operands_t x,
                         bool& done, const std::function<void()>& before = {}) {
  return guarded(handle, [&] {
    if (!problem) throw InvalidValue("the problem is a null pointer");
    const Batch batch = batch_of(*problem);
    const OnDevice on(handle->device);
    if (problem->order == GEMM_LADDER_COL_MAJOR) std::swap(x.a, x.b);
    try {
      done = handle->run(batch, x, before);
    } catch (const Partly& error) {
      done = true;
      throw CudaError(error.what(), cudaErrorLaunchFailure);
    }
  });
}

}  // namespace

gemm_ladder_status_t ladder::create_beside_cublas(gemm_ladder_handle_t* handle) { return create(handle, true); }

gemm_ladder_status_t ladder::run_beside_cublas(gemm_ladder_handle_t handle, const gemm_ladder_problem_t& problem,
                                               float alpha, const void* a, const void* b, float beta, void* c,
                                               bool& done, const std::function<void()>& before) {
  done = false;
  return run(handle, &problem, {alpha, a, b, beta, c, nullptr, nullptr, nullptr}, done, before);
}

std::string ladder::rung_name(const gemm_ladder_problem_t& problem) {
  return rung_for(batch_of(problem).problem)->stem();
}

gemm_ladder_status_t gemm_ladder_create(gemm_ladder_handle_t* handle) { return create(handle, false); }

gemm_ladder_status_t gemm_ladder_destroy(gemm_ladder_handle_t handle) {
  const gemm_ladder_status_t status = guarded(handle, [&] {
    const OnDevice on(handle->device);
    handle->finish();
  });
  delete handle;
  return status;
}

gemm_ladder_status_t gemm_ladder_set_stream(gemm_ladder_handle_t handle, cudaStream_t stream) {
  return guarded(handle, [&] { handle->stream = stream; });
}

gemm_ladder_status_t gemm_ladder_set_workspace(gemm_ladder_handle_t handle, void* workspace, size_t bytes) {
  return guarded(handle, [&] {
    if (!is_aligned(workspace, 256)) throw InvalidValue("the workspace is not aligned to 256 bytes");
    handle->own_workspace = workspace, handle->own_bytes = workspace ? bytes : 0;
  });
}

gemm_ladder_status_t gemm_ladder_run(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem, float alpha,
                                     const void* a, const void* b, float beta, void* c) {
  bool done = false;
  return run(handle, problem, {alpha, a, b, beta, c, nullptr, nullptr, nullptr}, done);
}

gemm_ladder_status_t gemm_ladder_run_operands(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem,
                                              const gemm_ladder_operands_t* operands) {
  if (!operands) return guarded(handle, [] { throw InvalidValue("the operands are a null pointer"); });
  bool done = false;
  return run(handle, problem, *operands, done);
}

gemm_ladder_status_t gemm_ladder_gemm(gemm_ladder_handle_t handle, gemm_ladder_order_t order, gemm_ladder_type_t type,
                                      gemm_ladder_result_t result, gemm_ladder_operation_t op_a,
                                      gemm_ladder_operation_t op_b, int64_t m, int64_t n, int64_t k, float alpha,
                                      const void* a, int64_t lda, const void* b, int64_t ldb, float beta, void* c,
                                      int64_t ldc) {
  const gemm_ladder_problem_t problem = {
      order, type, result, op_a, op_b, m, n, k, lda, ldb, ldc, 1, 0, 0, 0, GEMM_LADDER_SCALES_NONE, 0};
  return gemm_ladder_run(handle, &problem, alpha, a, b, beta, c);
}

gemm_ladder_status_t gemm_ladder_explain(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem, char* text,
                                         size_t size) {
  return guarded(handle, [&] {
    if (!problem || !text || size == 0) throw InvalidValue("explain takes a problem, and room for text");
    const Batch batch = batch_of(*problem);
    const OnDevice on(handle->device);
    const Problem& p = batch.problem;
    const std::string cannot = p.m && p.n && p.k ? why_not(p, batch) : "",
                      slower = cannot.empty() && p.m && p.n && p.k && handle->cublas ? why_cublas(p, batch) : "";
    const Rung* const rung = rung_for(p);
    if (!rung && is_one_rung()) throw InvalidValue(no_rung(p));
    const std::string other = is_one_rung()         ? rung->stem()
                              : !cublas_computes(p) ? "plain kernel"
                              : handle->cublas      ? "cuBLAS"
                                                    : "plain kernel, for want of cuBLAS";
    std::string words;
    if (!p.m || !p.n || !p.k)
      words = "no product: C = beta C\n";
    else if (!cannot.empty() || !slower.empty())
      words = other + ": " + cannot + slower + "\n";
    else
      words = rung->stem() + ":\n" + explain_transposed(transposed_first(p)) +
              (rung->explain ? rung->explain(with_transposed(p, transposed_first(p))) : "");
    std::snprintf(text, size, "%s", words.c_str());
  });
}

gemm_ladder_status_t gemm_ladder_quantise(gemm_ladder_handle_t handle, gemm_ladder_type_t type,
                                          gemm_ladder_scale_t scales, int64_t rows, int64_t columns, const void* x,
                                          int64_t ld, void* quantised, int64_t ld_quantised, float* scale) {
  return guarded(handle, [&] {
    const auto require = [](bool holds, const char* what) {
      if (!holds) throw InvalidValue(what);
    };
    const Type of = type_of(type);
    const Block block = block_of(scales);
    require(rows >= 0 && columns >= 0, "rows and columns must be at least 0");
    require(rows < 1 << 30 && columns < 1 << 30 && (rows + 3) / 4 * ((columns + 127) / 128) < 1 << 30,
            "the matrix is too large: rows and columns must be below 2^30, and rows times columns below 2^39");
    require(ld >= columns, "ld is smaller than a row");
    require(ld_quantised >= columns, "ld_quantised is smaller than a row");
    if (rows == 0 || columns == 0) return;
    require(x && quantised && scale, !x           ? "x is a null pointer"
                                     : !quantised ? "quantised is a null pointer"
                                                  : "scale is a null pointer");
    const OnDevice on(handle->device);
    quantise({of, block, static_cast<int>(rows), static_cast<int>(columns), x, ld, static_cast<uint8_t*>(quantised),
              ld_quantised, scale},
             handle->stream);
  });
}

const char* gemm_ladder_status_string(gemm_ladder_status_t status) {
  switch (status) {
    case GEMM_LADDER_OK:
      return "all is well";
    case GEMM_LADDER_INVALID_VALUE:
      return "an argument is wrong";
    case GEMM_LADDER_OUT_OF_MEMORY:
      return "the workspace could not be allocated";
    case GEMM_LADDER_CUDA_ERROR:
      return "a call of CUDA failed";
    case GEMM_LADDER_CUBLAS_ERROR:
      return "a call of cuBLAS failed";
  }
  return "no status of this library";
}

const char* gemm_ladder_last_error(gemm_ladder_handle_t handle) {
  return handle ? handle->error.c_str() : "the handle is a null pointer";
}
