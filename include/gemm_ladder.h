/* GEMM Ladder as a library: C = alpha op(A) op(B) + beta C on NVIDIA GPUs, by the last rungs of the ladder where they are the faster,
 * and by cuBLAS elsewhere. docs/use.md shows it from C++, PyTorch, JAX and CuPy. */
#ifndef GEMM_LADDER_H
#define GEMM_LADDER_H

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns. */
typedef enum {
  GEMM_LADDER_OK = 0,
  GEMM_LADDER_INVALID_VALUE = 1, /* an argument is wrong; gemm_ladder_last_error() says which */
  GEMM_LADDER_OUT_OF_MEMORY = 2, /* the workspace could not be allocated */
  GEMM_LADDER_CUDA_ERROR = 3,    /* a call of CUDA failed */
  GEMM_LADDER_CUBLAS_ERROR = 4   /* a call of cuBLAS failed */
} gemm_ladder_status_t;

/* Types of A and B, and how they are multiplied. Sums are FP32; of E4M3 without scales of blocks the tensor cores keep 13 bits of a sum. */
typedef enum {
  GEMM_LADDER_F32 = 0,  /* FP32, on the CUDA cores: no bits are lost */
  GEMM_LADDER_TF32 = 1, /* FP32 in memory, rounded to TF32 for the tensor cores */
  GEMM_LADDER_BF16 = 2,
  GEMM_LADDER_F16 = 3,
  GEMM_LADDER_E4M3 = 4 /* FP8 of 4 exponent and 3 mantissa bits */
} gemm_ladder_type_t;

/* Type of C: FP32, or that of A and B; with E4M3 the latter is BF16. */
typedef enum { GEMM_LADDER_RESULT_F32 = 0, GEMM_LADDER_RESULT_SAME = 1 } gemm_ladder_result_t;

/* Whether a matrix is stored row after row, as C has arrays, or column after column, as BLAS has them. */
typedef enum { GEMM_LADDER_ROW_MAJOR = 0, GEMM_LADDER_COL_MAJOR = 1 } gemm_ladder_order_t;

/* op(X): X as it is stored, or its transpose. */
typedef enum { GEMM_LADDER_N = 0, GEMM_LADDER_T = 1 } gemm_ladder_operation_t;

/* Which numbers of a matrix share a scale, and where it is, in FP32. ceil(x) is the next whole number. */
typedef enum {
  GEMM_LADDER_SCALE_ALL = 0,    /* all: scale[0] */
  GEMM_LADDER_SCALE_ROWS = 1,   /* a row: scale[row] */
  GEMM_LADDER_SCALE_1X128 = 2,  /* 128 neighbours in a row: scale[column / 128 * (4 * ceil(rows / 4)) + row] */
  GEMM_LADDER_SCALE_128X128 = 3 /* 128 x 128: scale[row / 128 * (4 * ceil(columns / 512)) + column / 128] */
} gemm_ladder_scale_t;

/* Scales of a product's operands: A is `a` times its scales, and B likewise. They lie as gemm_ladder_quantise() writes those of A, m x k, and of
 * B as it is stored, n x k. */
typedef enum {
  GEMM_LADDER_SCALES_NONE = 0,
  GEMM_LADDER_SCALES_TENSOR = 1, /* of both GEMM_LADDER_SCALE_ALL */
  GEMM_LADDER_SCALES_ROWS = 2,   /* of both GEMM_LADDER_SCALE_ROWS: of B one for each column */
  GEMM_LADDER_SCALES_BLOCKS = 3  /* of A GEMM_LADDER_SCALE_1X128, of B GEMM_LADDER_SCALE_128X128 */
} gemm_ladder_scales_t;

/* The product of one call but for its data. op(A) is m x k, op(B) k x n, C m x n. A leading dimension is the distance in elements from
 * one stored row (column, where `order` is column-major) to the next. `stride_x`: elements from one matrix of a batch to the next;
 * not looked at where `batch` is 1.
 *
 * Scales are for GEMM_LADDER_E4M3. With `groups`, each group has its rows of A and C and a B of its own, as the experts of a mixture have:
 * `m` counts the rows of all, and the B lie one after another, n stored rows each; so do their scales, but for the one of
 * GEMM_LADDER_SCALES_TENSOR, which all share. Products with scales or groups are row-major, with op_a N, op_b T and batch 1. */
typedef struct {
  gemm_ladder_order_t order;
  gemm_ladder_type_t type;
  gemm_ladder_result_t result;
  gemm_ladder_operation_t op_a, op_b;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch;
  int64_t stride_a, stride_b, stride_c;
  gemm_ladder_scales_t scales;
  int64_t groups; /* 0: one product */
} gemm_ladder_problem_t;

/* The data of one call, but for its factors on the device. Null pointers for what the problem does not have. */
typedef struct {
  float alpha;
  const void *a, *b;
  float beta;
  void* c;
  const float *scale_a, *scale_b; /* blocks aligned to 16 bytes, or it takes long */
  const int32_t* first_row;       /* of each group: groups + 1 of them, first 0, then ascending, last m */
} gemm_ladder_operands_t;

/* A handle belongs to the device that is current when it is created, and to one thread at a time. Different handles may be used at
 * the same time. */
typedef struct gemm_ladder_context* gemm_ladder_handle_t;

gemm_ladder_status_t gemm_ladder_create(gemm_ladder_handle_t* handle);

/* Waits for the work that the handle has enqueued. A graph that was captured with it must not be launched afterwards. */
gemm_ladder_status_t gemm_ladder_destroy(gemm_ladder_handle_t handle);

/* Later calls enqueue on `stream`; at first it is the default stream. */
gemm_ladder_status_t gemm_ladder_set_stream(gemm_ladder_handle_t handle, cudaStream_t stream);

/* Later calls use this device memory, aligned to 256 bytes, where it is large enough for their kernel; else, and with a null pointer, the
 * handle's own. Its own grows as it must; each stream and each captured graph has a part of its own. */
gemm_ladder_status_t gemm_ladder_set_workspace(gemm_ladder_handle_t handle, void* workspace, size_t bytes);

/* C = alpha op(A) op(B) + beta C, row-major or column-major as `order` says. alpha and beta are on the host. As BLAS defines it: where
 * alpha is 0, A and B are not read, and where beta is 0, C is not. Enqueues and returns. */
gemm_ladder_status_t gemm_ladder_gemm(gemm_ladder_handle_t handle, gemm_ladder_order_t order, gemm_ladder_type_t type,
                                      gemm_ladder_result_t result, gemm_ladder_operation_t op_a,
                                      gemm_ladder_operation_t op_b, int64_t m, int64_t n, int64_t k, float alpha,
                                      const void* a, int64_t lda, const void* b, int64_t ldb, float beta, void* c,
                                      int64_t ldc);

/* The same for a problem in a struct, of one matrix or of a batch with strides. */
gemm_ladder_status_t gemm_ladder_run(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem, float alpha,
                                     const void* a, const void* b, float beta, void* c);

/* The same with scales and groups, too. */
gemm_ladder_status_t gemm_ladder_run_operands(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem,
                                              const gemm_ladder_operands_t* operands);

/* Which kernel such a call runs, and why, as text of at most `size` bytes, its end included. Nothing is run; matrices are taken to be
 * aligned to 256 bytes. */
gemm_ladder_status_t gemm_ladder_explain(gemm_ladder_handle_t handle, const gemm_ladder_problem_t* problem, char* text,
                                         size_t size);

/* E4M3 of a row-major matrix in FP32, BF16 or FP16, with scales. A scale is the largest magnitude of its numbers over 448, and at least
 * 2^-126; a number becomes x * (1 / scale), rounded to nearest, ties to even, in E4M3. NaN stays NaN; an infinity becomes NaN, with an
 * infinite scale. Enqueues and returns. */
gemm_ladder_status_t gemm_ladder_quantise(gemm_ladder_handle_t handle, gemm_ladder_type_t type,
                                          gemm_ladder_scale_t scales, int64_t rows, int64_t columns, const void* x,
                                          int64_t ld, void* quantised, int64_t ld_quantised, float* scale);

/* A sentence on what the status means; and on what went wrong in the handle's last call that did not return GEMM_LADDER_OK. */
const char* gemm_ladder_status_string(gemm_ladder_status_t status);
const char* gemm_ladder_last_error(gemm_ladder_handle_t handle);

#ifdef __cplusplus
}
#endif

#endif
