// Integer arithmetic of extended precision (PTX ISA 9.7.2): the carry flag goes in and out.
#include "sim/executor/lanes/integers.h"

namespace sim {
namespace {

/// Add, sub, mad.lo and mad.hi with carry. In: uses CC.CF; Out: sets it.
enum class Ext { add, sub, mad_lo, mad_hi };
template <Ext what, bool In, bool Out, class T>
void extended(std::byte* r, const Operands& o, Mask mask) {
  T* d = at<T>(r, o.d);
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b), *c = at<T>(r, o.c);
  Mask& carry = *at<Mask>(r, carry_register);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const unsigned cf = In ? carry >> l & 1 : 0;
    unsigned __int128 wide;
    if constexpr (what == Ext::add)
      wide = static_cast<unsigned __int128>(a[l]) + b[l] + cf;
    else if constexpr (what == Ext::sub)
      wide = static_cast<unsigned __int128>(a[l]) - b[l] - cf;
    else if constexpr (what == Ext::mad_lo)
      wide = static_cast<unsigned __int128>(mul_lo(a[l], b[l])) + c[l] + cf;
    else
      wide = static_cast<unsigned __int128>(mul_hi(a[l], b[l])) + c[l] + cf;
    const bool out = wide >> (8 * sizeof(T)) & 1;  // carry, or borrow
    d[l] = static_cast<T>(wide);
    if (Out) carry = (carry & ~(1U << l)) | Mask{out} << l;
  }
}

template <class U>
void add_all(LaneTable& t, std::string_view type) {
  const auto put = [&]<Ext what>(std::string_view base, std::string_view half) {
    constexpr uint8_t w = width<U>, c = what == Ext::mad_lo || what == Ext::mad_hi ? w : 0;
    t.add({base, half, ".cc.", type}, {extended<what, false, true, U>, Class::integer, w, w, w, c, 0});
    t.add({base, "c", half, ".cc.", type}, {extended<what, true, true, U>, Class::integer, w, w, w, c, 0});
    t.add({base, "c", half, ".", type}, {extended<what, true, false, U>, Class::integer, w, w, w, c, 0});
  };
  put.template operator()<Ext::add>("add", "");
  put.template operator()<Ext::sub>("sub", "");
  put.template operator()<Ext::mad_lo>("mad", ".lo");
  if (type[0] == 'u') put.template operator()<Ext::mad_hi>("mad", ".hi");
}

}  // namespace

void add_extended(LaneTable& t) {
  add_all<u32>(t, "u32");
  add_all<u32>(t, "s32");
  add_all<u64>(t, "u64");
  add_all<u64>(t, "s64");
}

}  // namespace sim
