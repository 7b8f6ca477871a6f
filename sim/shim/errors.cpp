// Names and strings of error codes.
#include "shim/runtime.h"

namespace sim {
namespace {

struct ErrorText {
  cudaError_t code;
  const char* name;
  const char* text;
};

constexpr ErrorText error_texts[] = {
#define ERROR(code, text) {code, #code, text},
#include "shim/errors.inc"
#undef ERROR
};

const ErrorText& text_of(cudaError_t code) {
  for (const ErrorText& error : error_texts)
    if (error.code == code) return error;
  static const ErrorText unknown = {cudaErrorUnknown, "unrecognized error code", "unrecognized error code"};
  return unknown;
}

}  // namespace
}  // namespace sim

CUDA_API const char* cudaGetErrorName(cudaError_t error) { return sim::text_of(error).name; }
CUDA_API const char* cudaGetErrorString(cudaError_t error) { return sim::text_of(error).text; }
