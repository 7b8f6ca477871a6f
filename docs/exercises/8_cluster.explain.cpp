// The exchange of 30 in a cluster: who sends which part where, how many bytes are waited for, and what is added to what.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "docs/exercises/explain.h"

namespace {

struct Wrong : std::runtime_error {
  using runtime_error::runtime_error;
};

const std::string LINES = " (chapter 30, The lines that matter).";
constexpr uint32_t RECEIVED = 0x10000, ARRIVED = 0x30000, MAPPED = 0x80000000;

/// Part j of 64 rows, as one thread sends it.
struct Sent {
  int from, i, j;
  float x[4];
};

// Of a cluster
std::vector<std::map<uint32_t, Sent>> shared;  // by block: what others have sent, by address
std::vector<uint32_t> came;                    // bytes
uint32_t room = 0;                             // bytes from RECEIVED on

// Of the thread that runs
int this_block = 0, this_i = 0, this_j = 0, this_owner = 0;
int waits = 0;
bool acquires = false;
uint32_t parity = 0, waited_on = 0;

std::string block_name(int block) { return "block " + std::to_string(block); }

uint32_t mapa(uint32_t address, int rank) { return (address & 0xFFFFFF) | static_cast<uint32_t>(rank) << 24 | MAPPED; }
int rank_of(uint32_t address) { return address & MAPPED ? address >> 24 & 127 : this_block; }

void st_async4(uint32_t address, const float (&x)[4], uint32_t barrier) {
  const int to = rank_of(address), counted = rank_of(barrier);
  const uint32_t at = address & 0xFFFFFF;
  const std::string of = "Block " + std::to_string(this_block) + " sends part " + std::to_string(this_j) +
                         ", owned by " + block_name(this_owner) + ", ";
  if (to >= static_cast<int>(shared.size()))
    throw Wrong(of + "to " + block_name(to) + ", which the cluster does not have.");
  if (to == this_block && this_owner == this_block)
    throw Wrong(of + "to itself. Its own partial sums are in acc already; nobody expects these bytes" + LINES);
  if (to == this_block)
    throw Wrong(of +
                "to itself: an address without mapa(), or with its own number, is one of this block's shared memory" +
                LINES);
  if (to != this_owner) throw Wrong(of + "to " + block_name(to) + ": the one that owns a part adds it" + LINES);
  if (counted != to)
    throw Wrong(of + "and lets an mbarrier of " + block_name(counted) +
                " count the bytes. The one that waits for them is " + block_name(to) +
                ", at its own: mapa(arrived, owner)" + LINES);
  if ((barrier & 0xFFFFFF) != ARRIVED)
    throw Wrong(of + "and lets an mbarrier count the bytes that is not `arrived`" + LINES);
  if (at < RECEIVED || at + 16 > RECEIVED + room)
    throw Wrong(of + "to a slot that there is not: " + block_name(to) + " has " + std::to_string(shared.size() - 1) +
                " slots, 0 to " + std::to_string(shared.size() - 2) + ", none for itself" + LINES);
  Sent sent{this_block, this_i, this_j, {x[0], x[1], x[2], x[3]}};
  const auto [other, is_new] = shared[to].insert({at, sent});
  if (!is_new && other->second.from != this_block)
    throw Wrong("Blocks " + std::to_string(other->second.from) + " and " + std::to_string(this_block) +
                " send parts to the same place in " + block_name(to) +
                ": the later ones overwrite the earlier. Each sender has a slot of its own" + LINES);
  if (!is_new) throw Wrong(of + "twice" + LINES);
  came[to] += 16;
}

void mbarrier_wait_parity(uint32_t barrier, uint32_t of) { ++waits, waited_on = barrier, parity = of & 1; }
void mbarrier_wait_parity_cluster(uint32_t barrier, uint32_t of) { mbarrier_wait_parity(barrier, of), acquires = true; }

void load4_shared(float (&x)[4], uint32_t address) {
  if (address < RECEIVED || address + 16 > RECEIVED + room)
    throw Wrong("Block " + std::to_string(this_block) +
                " adds four sums from a slot that there is not: it has none for " +
                "itself, its own partial sums are in acc already" + LINES);
  const auto found = shared[this_block].find(address);
  if (found == shared[this_block].end())
    throw Wrong("Block " + std::to_string(this_block) + " adds four sums from a place to which nobody has sent any" +
                (this_owner != this_block
                     ? ": part " + std::to_string(this_j) + " is owned by " + block_name(this_owner) + ", which adds it"
                     : "") +
                LINES);
  for (int e = 0; e < 4; ++e) x[e] = found->second.x[e];
}

template <class Tile, class F>
void for_parts(int splits, F&& f) {
  for (int i = 0; i < Tile::WM / 64; ++i)
    for (int j = 0; j < Tile::BN / 8; ++j) {
      this_i = i, this_j = j, this_owner = j % splits;
      f(i, j, j % splits, j / splits);
    }
}

/// 30's lines around the holes, for one thread of one block.
template <class Tile>
struct Thread {
  static constexpr int THREADS = 128, PART = Tile::BN / 8;
  int split, splits, thread;
  float acc[Tile::WM / 64][Tile::BN / 8][4] = {};
  uint32_t received = RECEIVED, arrived = ARRIVED;

  int owned = (PART + splits - 1) / splits;

  uint32_t place(int from, int to, int i, int k) {
#include "hole/slot"
    return received + (((slot * (Tile::WM / 64) + i) * owned + k) * THREADS + thread) * 16;
  }
  void send() {
    this_block = split;
    for_parts<Tile>(splits, [&](int i, int j, int owner, int k) {
#include "hole/sends"
    });
  }
  void wait() {
    this_block = split, waits = 0, acquires = false;
#include "hole/wait"
  }
  void add() {
    this_block = split;
#include "hole/adds"
  }
};

template <class Tile>
uint32_t received_bytes(int split, int splits) {
#include "hole/bytes"
}

float power(int block) { return std::ldexp(1.0F, 2 * block); }  // of 4: sums of eight are exact

template <class Tile>
void look_at(int splits) {
  const std::string of = "Of " + std::to_string(splits) + " blocks with tiles of " + std::to_string(Tile::BM) + "x" +
                         std::to_string(Tile::BN) + ", ";
  std::vector<Thread<Tile>> threads;
  for (int block = 0; block < splits; ++block)
    for (int thread = 0; thread < 128; ++thread) {
      auto& mine = threads.emplace_back(Thread<Tile>{block, splits, thread});
      for (int i = 0; i < Tile::WM / 64; ++i)
        for (int j = 0; j < Tile::BN / 8; ++j)
          for (int e = 0; e < 4; ++e) mine.acc[i][j][e] = power(block) * (1 + e);
    }
  shared.assign(splits, {}), came.assign(splits, 0);
  room = (splits - 1) * threads[0].owned * (Tile::WM / 64) * 128 * 16;
  for (auto& thread : threads) thread.send();
  for (int block = 0; block < splits; ++block) {
    int owned = 0;
    for (int j = block; j < Tile::BN / 8; j += splits) ++owned;
    const std::string parts = std::to_string(owned) + (owned == 1 ? " part" : " parts") +
                              " of 2,048 bytes from each of " + std::to_string(splits - 1) +
                              (splits > 2 ? " blocks" : " block");
    const uint32_t due = (splits - 1) * owned * (Tile::WM / 64) * 2048;
    if (came[block] == 0)
      throw Wrong(of + block_name(block) + " is sent nothing, and it owns " + std::to_string(owned) + " parts" + LINES);
    if (came[block] != due)
      throw Wrong(of + block_name(block) + " is sent " + std::to_string(came[block]) + " bytes, and it should be " +
                  parts + ": " + std::to_string(due) + LINES);
    const uint32_t expected = received_bytes<Tile>(block, splits);
    if (expected > due)
      throw Wrong(of + block_name(block) + " expects " + std::to_string(expected) + " bytes, and " +
                  std::to_string(due) + " come, " + parts + ": it waits for ever" + LINES);
    if (expected < due)
      throw Wrong(of + block_name(block) + " expects " + std::to_string(expected) + " bytes, and " +
                  std::to_string(due) + " come, " + parts + ": the wait may end before they are all there" + LINES);
  }
  for (auto& thread : threads) {
    thread.wait();
    if (waits == 0)
      throw Wrong(
          "What the other blocks send is added without a wait: st_async returns at once, and they may not even have "
          "computed it" +
          LINES);
    if (waited_on != ARRIVED)
      throw Wrong("The wait is on another mbarrier than `arrived`, which counts the bytes" + LINES);
    if (parity != 0)
      throw Wrong(
          "The wait is for parity 1 of `arrived`, the phase before the first. A new mbarrier counts it as complete, "
          "so nobody waits (chapter 21, An mbarrier's life).");
    if (!acquires)
      throw Wrong(
          "mbarrier_wait_parity has the scope of the block. Only an acquire at the scope of the cluster sees what "
          "other blocks have stored: mbarrier_wait_parity_cluster" +
          LINES);
  }
  for (auto& thread : threads) {
    thread.add();
    for (int i = 0; i < Tile::WM / 64; ++i)
      for (int j = thread.split; j < Tile::BN / 8; j += splits)
        for (int e = 0; e < 4; ++e) {
          const float found = thread.acc[i][j][e] / (1 + e);
          const std::string part = of + "part " + std::to_string(j) + " of " + block_name(thread.split);
          long rest = std::lround(found);
          for (int block = 0; block < splits; ++block, rest /= 4) {
            if (rest % 4 == 1) continue;
            if (rest % 4 == 0)
              throw Wrong(part + " lacks the partial sums of " + block_name(block) +
                          (block == thread.split ? ", its own, which are in acc already" : "") + LINES);
            throw Wrong(part + " has the partial sums of " + block_name(block) + " more than once" +
                        (block == thread.split ? ": its own are in acc already" : "") + LINES);
          }
        }
  }
}

template <int WM_, int BN_>
struct Tile_ {
  static constexpr int WM = WM_, BM = WM_, BN = BN_, WARPGROUPS = 1, TURNS = 1, CONSUMERS = 128;
};

}  // namespace

int main() {
  try {
    look_at<Tile_<64, 64>>(4);  // chapter 30's
    look_at<Tile_<64, 64>>(8);
    look_at<Tile_<64, 96>>(8);  // block 0 owns more than block 7
  } catch (const Wrong& wrong) {
    finding(wrong.what());
  }
}
