// <mma.h>, with stand-ins for what it lacks before sm_80: fragments of BF16 and TF32. Rungs 09, 09a and 09b are compiled for
// sm_75, too, where the tensor cores multiply FP16 alone. Their refuses() keeps the other types away from such a GPU, so
// a stand-in is never executed; if it were, it would trap.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
namespace nvcuda::wmma {

template <class T>
struct StandIn {
  static constexpr int num_elements = 8;
  T x[num_elements];
};

namespace precision {
class tf32;
}
template <class Use, class Layout>
class fragment<Use, 16, 16, 16, __nv_bfloat16, Layout> : public StandIn<__nv_bfloat16> {};
template <class Use, class Layout>
class fragment<Use, 16, 16, 8, precision::tf32, Layout> : public StandIn<float> {};
template <>
class fragment<accumulator, 16, 16, 8, float> : public StandIn<float> {};

inline __device__ float __float_to_tf32(float x) { return x; }
inline __device__ void fill_fragment(StandIn<float>&, float) { __trap(); }
template <class T>
__device__ void load_matrix_sync(StandIn<T>&, const T*, unsigned) {
  __trap();
}
inline __device__ void load_matrix_sync(StandIn<float>&, const float*, unsigned, layout_t) { __trap(); }
inline __device__ void store_matrix_sync(float*, const StandIn<float>&, unsigned, layout_t) { __trap(); }
template <class Sum, class T>
__device__ void mma_sync(Sum&, const StandIn<T>&, const StandIn<T>&, const Sum&) {
  __trap();
}

}  // namespace nvcuda::wmma
#endif
