// Comparison and selection (PTX ISA 9.7.6).
//
// A comparison is a loop that gives a mask; what is done with the mask is written once, not inlined into each of them.
#include <immintrin.h>

#include <cstring>

#include "executor/lanes/table.h"

namespace sim {
namespace {

// Of two numbers; or of two vectors, of all elements at once.
constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return (a < b) | (a > b); };  // false for NaN; "neu" is true
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
/// The unordered comparisons are true where an operand is NaN.
template <auto f>
constexpr auto unordered = [](auto a, auto b) { return f(a, b) | (a != a) | (b != b); };
constexpr auto num = [](auto a, auto b) { return (a == a) & (b == b); };
constexpr auto nan = [](auto a, auto b) { return (a != a) | (b != b); };

/// One bit per lane, of all lanes. GCC does not vectorise the gathering of bits, so that is written out for the usual widths.
template <auto f, class T>
[[gnu::noinline]] Mask compare(const T* a, const T* b) {
  using Vector [[gnu::vector_size(32)]] = T;
  Mask result = 0;
  if constexpr (sizeof(T) >= 4 && std::is_invocable_v<decltype(f), Vector, Vector>) {
    constexpr int at_once = 32 / sizeof(T);
    for (int l = 0; l < warp_size; l += at_once) {
      Vector va, vb;
      std::memcpy(&va, a + l, sizeof va);
      std::memcpy(&vb, b + l, sizeof vb);
      const auto yes = f(va, vb);
      const int bits = sizeof(T) == 4 ? _mm256_movemask_ps(std::bit_cast<__m256>(yes))
                                      : _mm256_movemask_pd(std::bit_cast<__m256d>(yes));
      result |= Mask(bits) << l;
    }
  } else {
    for (int l = 0; l < warp_size; ++l) result |= Mask{static_cast<bool>(f(a[l], b[l]))} << l;
  }
  return result;
}

/// The 16-bit formats are compared as FP64: every `step`-th of the values from `from` on.
template <class T>
struct Numbers {
  alignas(32) double x[warp_size];
  [[gnu::noinline]] Numbers(const T* from, int step) {
    for (int l = 0; l < warp_size; ++l) x[l] = from[step * l].value();
  }
};

template <auto f, class T>
Mask compare_operands(std::byte* r, const Operands& o) {
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b);
  if constexpr (is_half<T>)
    return compare<f, f64>(Numbers(a, 1).x, Numbers(b, 1).x);
  else
    return compare<f, T>(a, b);
}

/// setp p|q, a, b, c: p = cmp OP c, q = !cmp OP c. q is at o.immediate, 0: none.
[[gnu::noinline]] void write_setp(std::byte* r, const Operands& o, Mask mask, Mask p) {
  Mask q = ~p;
  if (o.flags) {
    const Mask c = *at<Mask>(r, o.extra) ^ (o.flags & flag_not_c ? all_lanes : 0);
    const int combine = o.flags & flag_combine;
    p = combine == flag_and ? p & c : combine == flag_or ? p | c : p ^ c;
    q = combine == flag_and ? q & c : combine == flag_or ? q | c : q ^ c;
  }
  write_predicate(r, o.d, p, mask);
  if (o.immediate) write_predicate(r, o.immediate, q, mask);
}

/// set.CMP.dtype.stype: all ones (integer) or 1.0 where true.
template <class D>
[[gnu::noinline]] void write_set(std::byte* r, const Operands& o, Mask mask, Mask p) {
  D yes;
  if constexpr (is_half<D>)
    yes = D::from(1);
  else if constexpr (std::is_floating_point_v<D>)
    yes = 1;
  else
    yes = static_cast<D>(-1);
  for_lanes<D>(r, o.d, mask, [=](int l) { return p >> l & 1 ? yes : D{}; });
}

template <auto f, class T>
void setp(std::byte* r, const Operands& o, Mask mask) {
  write_setp(r, o, mask, compare_operands<f, T>(r, o));
}
template <auto f, class D, class T>
void set(std::byte* r, const Operands& o, Mask mask) {
  write_set<D>(r, o, mask, compare_operands<f, T>(r, o));
}

/// set of pairs: each half on its own, 1.0 or all ones.
template <auto f, class D, class T>
void set_pair(std::byte* r, const Operands& o, Mask mask) {
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b);
  const Mask low = compare<f, f64>(Numbers(a, 2).x, Numbers(b, 2).x);
  const Mask high = compare<f, f64>(Numbers(a + 1, 2).x, Numbers(b + 1, 2).x);
  const u32 yes = is_pair<D> ? T::from(1).bits : 0xffff;
  for_lanes<u32>(r, o.d, mask, [=](int l) { return (low >> l & 1 ? yes : 0) | (high >> l & 1 ? yes << 16 : 0); });
}

/// setp and set of one comparison, of operands of type T.
template <auto f, class T>
void add_one(LaneTable& t, std::string_view comparison, std::string_view type) {
  constexpr uint8_t w = width<T>;
  const auto with = [&]<auto g>(std::string_view ftz) {
    t.add({"setp.", comparison, ftz, ".", type}, {setp<g, T>, Class::predicate, predicate, w, w, 0, 0});
    t.add({"set.", comparison, ftz, ".u32.", type}, {set<g, u32, T>, Class::predicate, 4, w, w, 0, 0});
    t.add({"set.", comparison, ftz, ".s32.", type}, {set<g, s32, T>, Class::predicate, 4, w, w, 0, 0});
    t.add({"set.", comparison, ftz, ".f32.", type}, {set<g, f32, T>, Class::predicate, 4, w, w, 0, 0});
    if constexpr (is_half<T>)
      t.add({"set.", comparison, ".", type, ".", type}, {set<g, T, T>, Class::predicate, 2, w, w, 0, 0});
  };
  with.template operator()<f>("");
  if constexpr (std::is_same_v<T, f32>)
    with.template operator()<[](f32 a, f32 b) { return f(flush(a), flush(b)); }>(".ftz");
  if constexpr (is_half<T>) {
    t.add({"set.", comparison, ".", type, "x2.", type, "x2"},
          {set_pair<f, Pair<T>, T>, Class::predicate, 4, 4, 4, 0, 0});
    t.add({"set.", comparison, ".u32.", type, "x2"}, {set_pair<f, u32, T>, Class::predicate, 4, 4, 4, 0, 0});
  }
}

template <class T>
void add_comparisons(LaneTable& t, std::string_view type) {
  add_one<eq, T>(t, "eq", type);
  add_one<ne, T>(t, "ne", type);
  add_one<lt, T>(t, "lt", type);
  add_one<le, T>(t, "le", type);
  add_one<gt, T>(t, "gt", type);
  add_one<ge, T>(t, "ge", type);
  if constexpr (std::is_unsigned_v<T>) {  // lower, same, higher: other names for unsigned integers
    add_one<lt, T>(t, "lo", type);
    add_one<le, T>(t, "ls", type);
    add_one<gt, T>(t, "hi", type);
    add_one<ge, T>(t, "hs", type);
  }
  if constexpr (!std::is_integral_v<T>) {
    add_one<unordered<eq>, T>(t, "equ", type);
    add_one<unordered<ne>, T>(t, "neu", type);
    add_one<unordered<lt>, T>(t, "ltu", type);
    add_one<unordered<le>, T>(t, "leu", type);
    add_one<unordered<gt>, T>(t, "gtu", type);
    add_one<unordered<ge>, T>(t, "geu", type);
    add_one<num, T>(t, "num", type);
    add_one<nan, T>(t, "nan", type);
  }
}

/// testp: what kind of number a is.
template <auto of_kind, class T>
void testp(std::byte* r, const Operands& o, Mask mask) {
  const T* a = at<T>(r, o.a);
  Mask result = 0;
  for (int l = 0; l < warp_size; ++l) result |= Mask{of_kind(std::fpclassify(a[l]))} << l;
  write_predicate(r, o.d, result, mask);
}
template <auto of_kind>
void add_testp(LaneTable& t, std::string_view kind) {
  t.add({"testp.", kind, ".f32"}, {testp<of_kind, f32>, Class::predicate, predicate, 4, 0, 0, 0});
  t.add({"testp.", kind, ".f64"}, {testp<of_kind, f64>, Class::predicate, predicate, 8, 0, 0, 0});
}

template <class T>
void selp(std::byte* r, const Operands& o, Mask mask) {
  const T *a = at<T>(r, o.a), *b = at<T>(r, o.b);
  const Mask p = *at<Mask>(r, o.c);
  for_lanes<T>(r, o.d, mask, [=](int l) { return p >> l & 1 ? a[l] : b[l]; });
}

/// slct: a where c >= 0, else b (also where c is NaN).
constexpr auto slct = []<class T>(T a, T b, auto c) { return c >= 0 ? a : b; };
constexpr auto slct_ftz = []<class T>(T a, T b, f32 c) { return flush(c) >= 0 ? a : b; };

/// selp and slct of all types of one width.
template <class T>
void add_selections(LaneTable& t, std::initializer_list<std::string_view> types) {
  constexpr uint8_t w = width<T>;
  for (const std::string_view type : types) {
    t.add({"selp.", type}, {selp<T>, Class::predicate, w, w, w, predicate, 0});
    t.add({"slct.", type, ".s32"}, entry<slct, T, T, T, s32>(Class::predicate));
    t.add({"slct.", type, ".f32"}, entry<slct, T, T, T, f32>(Class::predicate));
    t.add({"slct.ftz.", type, ".f32"}, entry<slct_ftz, T, T, T, f32>(Class::predicate));
  }
}

}  // namespace

void add_comparison(LaneTable& t) {
  add_comparisons<s16>(t, "s16");
  for (const char* type : {"u16", "b16"}) add_comparisons<u16>(t, type);
  add_comparisons<s32>(t, "s32");
  for (const char* type : {"u32", "b32"}) add_comparisons<u32>(t, type);
  add_comparisons<s64>(t, "s64");
  for (const char* type : {"u64", "b64"}) add_comparisons<u64>(t, type);
  add_comparisons<f32>(t, "f32");
  add_comparisons<f64>(t, "f64");
  add_comparisons<f16>(t, "f16");
  add_comparisons<bf16>(t, "bf16");
  add_testp<[](int c) { return c != FP_INFINITE && c != FP_NAN; }>(t, "finite");
  add_testp<[](int c) { return c == FP_INFINITE; }>(t, "infinite");
  add_testp<[](int c) { return c != FP_NAN; }>(t, "number");
  add_testp<[](int c) { return c == FP_NAN; }>(t, "notanumber");
  add_testp<[](int c) { return c == FP_NORMAL; }>(t, "normal");
  add_testp<[](int c) { return c == FP_SUBNORMAL; }>(t, "subnormal");
  add_selections<u16>(t, {"b16", "u16", "s16"});
  add_selections<u32>(t, {"b32", "u32", "s32", "f32"});
  add_selections<u64>(t, {"b64", "u64", "s64", "f64"});
}

}  // namespace sim
