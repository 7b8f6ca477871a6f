// A kernel, decoded once: a flat list of operations whose operands are places in a warp's register file.
//
// Register file. Each virtual register of PTX is 32 values side by side, one per lane, each as wide as the register. A
// predicate is one 32-bit mask. Constants, addresses of variables and special registers (%tid.x, ...) are registers
// too, filled before the warp starts. So every operand of every operation is a byte offset, and an operation is a loop
// over 32 neighbouring values, which the compiler vectorises.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace sim {

constexpr int warp_size = 32;
using Mask = uint32_t;  ///< one bit per lane
constexpr Mask all_lanes = 0xffffffff;

/// Byte offsets into the register file.
struct Operands {
  uint32_t d = 0, a = 0, b = 0, c = 0;
  uint32_t extra = 0;      ///< a second predicate: setp's {!}c, shfl's p
  uint8_t d_bytes = 0;     ///< width of the register d; ld, st and cvt allow one wider than the type
  uint8_t a_bytes = 0;     ///< width of the register a
  uint8_t flags = 0;       ///< see below
  uint32_t immediate = 0;  ///< lop3's table, bar.red's operation, ...
};
constexpr uint8_t flag_and = 1, flag_or = 2, flag_xor = 3, flag_combine = 3;  // setp combines with a predicate
constexpr uint8_t flag_not_c = 4;                                             // that predicate is negated

/// The carry flag CC.CF (PTX ISA 9.7.2), one bit per lane, is the first word of every register file.
constexpr uint32_t carry_register = 0;

/// What an arithmetic instruction does to the lanes of `mask`.
using LaneFunction = void (*)(std::byte* registers, const Operands& operands, Mask mask);

enum class Kind : uint8_t {
  lanes,           ///< arithmetic: op.function
  branch,          ///< bra: to op.target
  call,            ///< call of a function: to op.target; o.extra: its number in Program::callees
  call_indirect,   ///< through the address in o.a, of a function with signature `immediate`
  stack_allocate,  ///< alloca: o.a bytes, aligned to `immediate`
  stack_save,      ///< stacksave
  stack_restore,   ///< stackrestore
  ret,             ///< from a function, or the end of the lane
  exit,
  trap,
  print,   ///< call of vprintf: format, arguments and result at o.a, o.b, o.d of a lane's frame
  pack,    ///< mov d, {..}
  unpack,  ///< mov {..}, d
  clock,   ///< mov of %clock, %clock64, %globaltimer
  load,
  store,
  atomic,   ///< atom and red
  nothing,  ///< fences (op.strong), prefetches: nothing to do in an executor that takes one instruction after another
  yield,    ///< nanosleep
  shuffle,  ///< shfl.sync: op.shuffle
  vote,     ///< op.vote
  redux,    ///< op.reduction
  active_mask,
  is_space,             ///< isspacep
  map_address,          ///< mapa
  cluster_rank,         ///< getctarank
  mbarrier,             ///< op.mbarrier
  bulk_copy,            ///< cp.async.bulk, cp.reduce.async.bulk: from op.from_space to op.space
  bulk_commit,          ///< cp.async.bulk.commit_group
  bulk_wait,            ///< cp.async.bulk.wait_group: immediate
  bulk_wait_read,       ///< cp.async.bulk.wait_group.read: immediate
  launch_cancel,        ///< clusterlaunchcontrol.try_cancel
  launch_query,         ///< clusterlaunchcontrol.query_cancel: immediate, see launch_query_*
  fence_proxy,          ///< fence.proxy.async
  fence_mbarrier_init,  ///< fence.mbarrier_init
  async_store,          ///< st.async, red.async
  async_copy,           ///< cp.async
  async_arrive,         ///< cp.async.mbarrier.arrive
  async_commit,         ///< cp.async.commit_group
  async_wait,           ///< cp.async.wait_group: immediate
  async_wait_all,       ///< cp.async.wait_all
  elect,
  match_any,
  match_all,
  warp_barrier,       ///< bar.warp.sync
  matrix_load,        ///< ldmatrix
  matrix_store,       ///< stmatrix
  matrix_transpose,   ///< movmatrix
  matrix_multiply,    ///< mma, wmma.mma: op.multiply
  fragment_load,      ///< wmma.load
  fragment_store,     ///< wmma.store
  barrier,            ///< bar.sync, bar.arrive, bar.red, barrier.*: op.barrier
  cluster_arrive,     ///< barrier.cluster.arrive
  cluster_wait,       ///< barrier.cluster.wait
  wgmma_fence,        ///< wgmma.fence
  wgmma_multiply,     ///< wgmma.mma_async
  wgmma_commit,       ///< wgmma.commit_group
  wgmma_wait,         ///< wgmma.wait_group: immediate
  tensor_allocate,    ///< tcgen05.alloc
  tensor_free,        ///< tcgen05.dealloc
  tensor_relinquish,  ///< tcgen05.relinquish_alloc_permit
  tensor_load,        ///< tcgen05.ld
  tensor_store,       ///< tcgen05.st
  tensor_wait,        ///< tcgen05.wait: immediate, whether for stores
  tensor_multiply,    ///< tcgen05.mma
  tensor_copy,        ///< tcgen05.cp
  tensor_shift,       ///< tcgen05.shift
  tensor_commit,      ///< tcgen05.commit
  tensor_fence,       ///< tcgen05.fence: immediate, whether after_thread_sync
  give_registers,     ///< setmaxnreg.dec: immediate
  take_registers,     ///< setmaxnreg.inc: immediate
};

/// Which lanes of a warp must have come to an instruction before it is executed.
enum class Meeting : uint8_t {
  none,     ///< each lane by itself
  members,  ///< those of its member mask, op.o.c (.sync)
  warp,     ///< all live lanes, as one (.aligned)
  block     ///< the same; and it may wait for other warps of the block or of the cluster
};
constexpr Meeting meeting(Kind kind) {
  switch (kind) {
    case Kind::shuffle:
    case Kind::vote:
    case Kind::elect:
    case Kind::match_any:
    case Kind::match_all:
    case Kind::redux:
    case Kind::warp_barrier:
      return Meeting::members;
    case Kind::matrix_load:
    case Kind::matrix_store:
    case Kind::matrix_transpose:
    case Kind::matrix_multiply:
    case Kind::fragment_load:
    case Kind::fragment_store:
    case Kind::tensor_load:
    case Kind::tensor_store:
    case Kind::tensor_wait:
      return Meeting::warp;
    case Kind::barrier:
    case Kind::cluster_arrive:
    case Kind::cluster_wait:
    case Kind::wgmma_fence:
    case Kind::wgmma_multiply:
    case Kind::wgmma_commit:
    case Kind::wgmma_wait:
    case Kind::tensor_allocate:
    case Kind::tensor_free:
    case Kind::tensor_relinquish:
    case Kind::give_registers:
    case Kind::take_registers:
      return Meeting::block;
    default:
      return Meeting::none;
  }
}

constexpr bool is_read(Kind k) { return k == Kind::load || k == Kind::matrix_load || k == Kind::fragment_load; }
constexpr bool is_write(Kind k) { return k == Kind::store || k == Kind::matrix_store || k == Kind::fragment_store; }

enum class Space : uint8_t { generic, global, shared, local, param, constant };

/// What an instruction counts as in the table of counts.
enum class Class : uint8_t {
  integer,
  fp32,
  fp64,
  fp16,
  tensor,
  convert,
  move,
  predicate,
  control,
  global,
  shared,
  local,
  param,
  atomic,
  warp,
  barrier,
  other
};
constexpr int classes = 17;
const char* name(Class c);

enum class Reduction : uint8_t { add, exch, cas, min, max, inc, dec, and_, or_, xor_ };  ///< of atom, red and redux
constexpr bool is_bitwise(Reduction r) { return r == Reduction::and_ || r == Reduction::or_ || r == Reduction::xor_; }
enum class NumberType : uint8_t { unsigned_, signed_, f32, f64, f16, bf16, f16x2, bf16x2, e4m3, e5m2 };
constexpr bool is_integer(NumberType type) { return type == NumberType::unsigned_ || type == NumberType::signed_; }

enum class Shuffle : uint8_t { up, down, bfly, idx };
enum class Vote : uint8_t { all, any, uni, ballot };
enum class BarrierOp : uint8_t { sync, arrive, popc, and_, or_ };  ///< the last three: bar.red
constexpr bool reduces(BarrierOp op) { return op != BarrierOp::sync && op != BarrierOp::arrive; }

enum class MbarrierOp : uint8_t {
  init,
  inval,
  arrive,
  arrive_drop,
  expect_tx,
  complete_tx,
  wait,  ///< test_wait and try_wait
  pending_count
};
/// Of Operands::flags: a wait by parity; an arrival that first expects bytes, or must not complete the phase.
constexpr uint8_t flag_parity = 1, flag_expect_tx = 2, flag_no_complete = 4;
/// Of a bulk copy: by a tensor map, to several blocks, adding to what is there, with its mbarrier in either block of a pair.
constexpr uint8_t flag_tensor = 1, flag_multicast = 2, flag_reduce = 4, flag_block_pair = 8;
/// Of cp.async.mbarrier.arrive: the arrival counts (.noinc).
constexpr uint8_t flag_noinc = 1;

/// Of clusterlaunchcontrol.query_cancel: whether a cluster was cancelled, or where its first block lies: x, y, z or all of them.
constexpr uint32_t query_is_canceled = 3, query_all = 4;

/// The registers of a vector operand, and the byte regions that a call copies.
struct Element {
  uint32_t offset;  ///< in the register file; `discarded` for _
  uint8_t bytes;    ///< the register's width
};
constexpr uint32_t discarded = 0xffffffff;
struct Copy {
  uint32_t from, to, bytes;  ///< of a lane's frame
};

/// An address operand: the register that holds it, how wide that is, and what is added.
struct Address {
  uint32_t base = 0;
  uint8_t bytes = 8;
  int64_t displacement = 0;
};
struct Fragment;  // matrix.h

struct alignas(64) Op {
  Kind kind = Kind::nothing;
  Class counted = Class::other;
  Space space = Space::generic;
  uint8_t bytes = 0;              ///< of one element of a memory access
  uint16_t flops = 0;             ///< per lane
  bool is_signed = false;         ///< the element is sign-extended into a wider register
  bool strong = false;            ///< volatile, relaxed, acquire, release: a synchronising access
  bool read_only = false;         ///< ld.global.nc: of memory that nobody writes during the launch
  bool cluster = false;           ///< shared: of any block of the cluster (.shared::cluster)
  bool drops_rank = false;        ///< shared, of its own block alone: what an address says of the block does not matter
  bool uses_accumulator = false;  ///< Program::accumulators has it
  bool guard_negated = false;
  uint32_t guard = 0;  ///< predicate register, or 0: none (0 is the carry flag)
  LaneFunction function = nullptr;
  Operands o;
  uint32_t target = 0;        ///< of branch and call
  int64_t displacement = 0;   ///< of an address
  uint8_t address_bytes = 8;  ///< width of the address register
  // What an instruction of one kind does; of other kinds they mean nothing.
  Reduction reduction = Reduction::add;
  Shuffle shuffle = Shuffle::up;
  Vote vote = Vote::all;
  BarrierOp barrier = BarrierOp::sync;
  MbarrierOp mbarrier = MbarrierOp::init;
  bool transposed = false;            ///< ldmatrix, stmatrix: .trans
  bool high_word = false;             ///< of a clock of 64 bits: its upper half
  Space from_space = Space::generic;  ///< of a bulk copy
  NumberType type = NumberType::unsigned_;
  NumberType b_type = NumberType::unsigned_;  ///< of wgmma's B
  Address from;                               ///< of a copy: where it reads
  void (*multiply)(std::byte* registers, const Op& op) = nullptr;
  std::shared_ptr<const Fragment> fragment;
  std::vector<Element> elements;   ///< of a vector operand (one for a scalar)
  std::vector<Element> values;     ///< of a vector atomic: what goes to memory
  std::vector<Address> addresses;  ///< of a bulk copy: to, from, the mbarrier; of st.async: to, the mbarrier
  std::vector<Copy> copies;        ///< arguments of call before, results after
  uint32_t arguments = 0;          ///< how many of `copies` are arguments
  uint32_t ptx_line = 0;
  uint32_t source = 0;  ///< index into Program::sources
  std::string text;     ///< mnemonic with modifiers, for reports
};

/// A mov from one register of 32 bits to another.
inline bool is_register_move(const Op& op) {
  return op.kind == Kind::lanes && op.counted == Class::move &&
         (op.text == "mov.b32" || op.text == "mov.u32" || op.text == "mov.f32" || op.text == "mov.s32");
}

/// A line of the program's source, from .loc.
struct SourceLine {
  std::string file;
  uint32_t line = 0;
  bool operator==(const SourceLine&) const = default;
};

/// A register that holds one value in all lanes: a constant, or something known at launch.
struct Preset {
  enum What : uint8_t {
    constant,
    param_address,
    variable,
    ntid_x,
    ntid_y,
    ntid_z,
    ctaid_x,
    ctaid_y,
    ctaid_z,
    nctaid_x,
    nctaid_y,
    nctaid_z,
    tid_x,
    tid_y,
    tid_z,
    laneid,
    warpid,
    nwarpid,
    smid,
    nsmid,
    gridid,
    zero,
    lanemask_eq,
    lanemask_le,
    lanemask_lt,
    lanemask_ge,
    lanemask_gt,
    dynamic_smem,
    total_smem,
    shared_address,  ///< of its own block's shared memory, with the block's rank
    reserved_smem,   ///< where the system's shared memory begins; and what is added
    cluster_ctaid_x,
    cluster_ctaid_y,
    cluster_ctaid_z,
    cluster_nctaid_x,
    cluster_nctaid_y,
    cluster_nctaid_z,
    cluster_ctarank,
    cluster_nctarank,
    clusterid_x,
    clusterid_y,
    clusterid_z,
    nclusterid_x,
    nclusterid_y,
    nclusterid_z,
    is_explicit_cluster,
    grid_workspace_high,
    grid_workspace_low
  };
  What what;
  uint8_t bytes;
  uint32_t offset;     ///< in the register file
  uint64_t value = 0;  ///< constant; or what is added
  std::string name;    ///< of a variable
};

/// A function that the kernel calls.
struct Callee {
  std::string name;
  uint32_t first_op = 0;
  uint32_t signature = 0;                ///< the same number for the same sizes of parameters and results
  uint32_t parameters = 0, results = 0;  ///< in a lane's frame
  /// It may call itself, or takes memory from the stack: a call keeps its registers and its part of the frame, and puts them
  /// back when it returns. Its local variables then lie on the stack, at the address that `local_base` holds.
  bool keeps = false;
  uint32_t frame = 0, frame_bytes = 0;
  uint32_t local_base = 0, local_bytes = 0;
  std::vector<Element> registers;
};
constexpr uint32_t stack_bytes = 16 << 10;  ///< per lane, where a program needs a stack

struct Program {
  std::string kernel;   ///< its PTX name
  std::vector<Op> ops;  ///< of the kernel and then of every function that it calls
  std::vector<SourceLine> sources;
  std::vector<Preset> presets;
  uint32_t register_bytes = 0;             ///< per warp
  uint32_t frame_bytes = 0;                ///< per lane: local memory, parameters of functions and the stack
  uint32_t stack_begin = 0;                ///< in the frame
  std::vector<Callee> callees;             ///< the kernel, which nothing calls, and the functions
  std::map<uint64_t, uint32_t> callee_at;  ///< by the address that a pointer holds
  uint32_t shared_bytes = 0;               ///< static
  uint32_t param_bytes = 0;
  /// By operation: those of its registers that are accumulators of a wgmma, too (not those that a wgmma itself accumulates in), or that
  /// a tcgen05.ld fills. Empty where there is neither.
  std::vector<std::vector<uint32_t>> accumulators;
  uint32_t dynamic_shared_align = 16;
  bool tensor_memory = false;             ///< it has instructions of tcgen05
  bool cancels_launches = false;          ///< it has clusterlaunchcontrol.try_cancel
  bool block_pairs = false;               ///< of cta_group::2: an address in shared memory holds its block's rank
  bool reserved_smem = false;             ///< it uses the shared memory that is the system's
  std::array<uint32_t, 3> max_threads{};  ///< .maxntid, 0: none
  uint32_t registers = 0;                 ///< per thread when it starts; 0: setmaxnreg cannot be used
};

}  // namespace sim
