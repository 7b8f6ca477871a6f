// Integer arithmetic of extended precision (PTX ISA 9.7.2): the carry flag goes in and out.
#include "executor/lanes/integers.h"

namespace sim {
namespace {

/// Add, sub, mad.lo and mad.hi with carry. In: uses CC.CF; Out: sets it. The hardware subtracts by adding b's complement, so after
/// a subtraction CC.CF is 1 where nothing was borrowed. nvcc's division of 128-bit integers adds that flag (addc after sub.cc).
enum class Ext { add, sub, mad_lo, mad_hi };
template <Ext what, bool In, bool Out, class T>
void extended(std::byte* r, const Operands& o, Mask mask) {
  using U = Unsigned<T>;
  U* d = at<U>(r, o.d);
  const U *a = at<U>(r, o.a), *b = at<U>(r, o.b), *c = at<U>(r, o.c);
  Mask& carry = *at<Mask>(r, carry_register);
  for (int l = 0; l < warp_size; ++l) {
    if (!(mask >> l & 1)) continue;
    const unsigned cf = In ? carry >> l & 1 : what == Ext::sub;
    unsigned __int128 wide;
    if constexpr (what == Ext::add)
      wide = static_cast<unsigned __int128>(a[l]) + b[l] + cf;
    else if constexpr (what == Ext::sub)
      wide = static_cast<unsigned __int128>(a[l]) + static_cast<U>(~b[l]) + cf;
    else if constexpr (what == Ext::mad_lo)
      wide = static_cast<unsigned __int128>(mul_lo(a[l], b[l])) + c[l] + cf;
    else
      wide = static_cast<unsigned __int128>(static_cast<U>(mul_hi(T(a[l]), T(b[l])))) + c[l] + cf;
    const bool out = wide >> (8 * sizeof(T)) & 1;
    d[l] = static_cast<U>(wide);
    if (Out) carry = (carry & ~(1U << l)) | Mask{out} << l;
  }
}

template <class T>
void add_all(LaneTable& t) {
  constexpr std::string_view type = type_name<T>;
  const auto put = [&]<Ext what>(std::string_view base, std::string_view half) {
    constexpr uint8_t w = width<T>, c = what == Ext::mad_lo || what == Ext::mad_hi ? w : 0;
    t.add({base, half, ".cc.", type}, {extended<what, false, true, T>, Class::integer, w, w, w, c, 0});
    t.add({base, "c", half, ".cc.", type}, {extended<what, true, true, T>, Class::integer, w, w, w, c, 0});
    t.add({base, "c", half, ".", type}, {extended<what, true, false, T>, Class::integer, w, w, w, c, 0});
  };
  put.template operator()<Ext::add>("add", "");
  put.template operator()<Ext::sub>("sub", "");
  put.template operator()<Ext::mad_lo>("mad", ".lo");
  put.template operator()<Ext::mad_hi>("mad", ".hi");
}

}  // namespace

void add_extended(LaneTable& t) {
  add_all<u32>(t);
  add_all<s32>(t);
  add_all<u64>(t);
  add_all<s64>(t);
}

}  // namespace sim
