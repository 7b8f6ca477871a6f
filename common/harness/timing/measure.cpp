#include "common/harness/timing/measure.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "common/harness/error.h"
#include "common/rung.h"

namespace ladder {
namespace {

constexpr double rounds_budget_ms = 2000.0;  // of all sittings together, as are these:
constexpr int least_rounds = 5, most_rounds = 30;
// Rounds of several sittings are over before the power limit lowers the clock, or begin after it has: short ones take
// burst_ms, and where one is long, others run for settling_ms before, and are not counted.
constexpr double burst_ms = 4.0, long_round_ms = 5.0, settling_ms = 500.0;
constexpr double batch_budget_ms = 250.0;  // of launches queued ahead: how long Ctrl-C may have to wait
constexpr int batch_launches = 240;  // the launch queue holds 1024 commands; a launch, two events and a mark are four
constexpr double steady_block_ms = 333.0;

class Event {
 public:
  Event() { cuda_check(cudaEventCreate(&event_)); }
  ~Event() {
    if (event_) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  void record(cudaStream_t stream) const { cuda_check(cudaEventRecord(event_, stream)); }
  double ms_since(const Event& start) const {
    float ms = 0.0F;
    cuda_check(cudaEventElapsedTime(&ms, start.event_, event_));
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// What passed from the first launch of a span to the end of its last.
struct Span {
  double ms;
  SmTime sm;
};

/// Queues launches, each on the next set of operands, and times spans of them.
class Clock {
 public:
  Clock(const Operands& operands, float alpha, float beta, cudaStream_t stream)
      : operands_(operands), alpha_(alpha), beta_(beta), stream_(stream) {}

  /// Launches `contender` `count` times; the next finish() has an element for it.
  void span(const Contender& contender, int count) {
    if (queued_ == 0) {
      hold(stream_, pause_ns_);
      sm_clock_.mark(stream_);
    }
    while (starts_.size() <= queued_) {
      starts_.emplace_back();
      stops_.emplace_back();
    }
    starts_[queued_].record(stream_);
    for (int i = 0; i < count; ++i) {
      contender.run(operands_.problem(next_set_, alpha_, beta_, stream_));
      next_set_ = (next_set_ + 1) % operands_.sets();
    }
    stops_[queued_++].record(stream_);
    sm_clock_.mark(stream_);
  }

  /// Waits for what was queued.
  std::vector<Span> finish() {
    cuda_check(cudaStreamSynchronize(stream_));
    const std::vector<SmTime> sm = sm_clock_.finish();
    std::vector<Span> spans(queued_);
    for (size_t i = 0; i < queued_; ++i) spans[i] = {stops_[i].ms_since(starts_[i]), sm[i]};
    queued_ = 0;
    stop_if_interrupted();
    return spans;
  }

  /// How long the stream is held before each batch: long enough to queue `launches` of them.
  void pause_for(int launches) { pause_ns_ = 30'000ULL * launches; }

 private:
  const Operands& operands_;
  float alpha_, beta_;
  cudaStream_t stream_;
  std::vector<Event> starts_, stops_;
  SmClock sm_clock_{batch_launches + 1};
  size_t queued_ = 0;
  int next_set_ = 0;
  unsigned long long pause_ns_ = 0;
};

}  // namespace

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * (values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - below) * (values[above] - values[below]);
}

std::vector<double> ratios(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  std::vector<double> result(numerator.size());
  std::transform(numerator.begin(), numerator.end(), denominator.begin(), result.begin(), std::divides<>());
  return result;
}

int cold_sets(const OperandSpec& spec, size_t l2_bytes, size_t available_bytes) {
  const size_t one = Operands::bytes(spec, 1);
  const size_t wanted = std::clamp<size_t>(2 * l2_bytes / one + 1, 2, 4096);
  return static_cast<int>(std::clamp<size_t>(available_bytes / one, 1, wanted));
}

int rounds_of(const Pace& pace, double round_ms) {
  if (pace.rounds > 0) return pace.rounds;
  const int least = ceil_div(least_rounds, pace.sittings);
  if (pace.protocol == Protocol::steady) return least;
  const int most = std::clamp(static_cast<int>(burst_ms / round_ms), ceil_div(most_rounds, pace.sittings), most_rounds);
  return static_cast<int>(std::clamp<double>(rounds_budget_ms / pace.sittings / round_ms, least, most));
}

Measurement measure(const std::vector<Contender>& contenders, const Operands& operands, float alpha, float beta,
                    const Pace& pace, const Nvml& nvml, cudaStream_t stream) {
  const int count = static_cast<int>(contenders.size());
  Clock clock(operands, alpha, beta, stream);
  Measurement result;
  result.ms.resize(count);
  result.sm.resize(count);

  // Two runs of each, not counted but for how long the second takes: code is loaded, caches and clocks settle.
  clock.pause_for(1);
  std::vector<double> estimate(count);
  for (int run = 0; run < 2; ++run)
    for (int i = 0; i < count; ++i) {
      clock.span(contenders[i], 1);
      estimate[i] = clock.finish()[0].ms;
    }
  const double round_ms = std::accumulate(estimate.begin(), estimate.end(), 0.0);

  GpuSampler sampler(nvml);
  const int rounds = rounds_of(pace, round_ms);
  if (pace.protocol == Protocol::steady) {
    for (int round = 0; round < rounds; ++round)
      for (int i = 0; i < count; ++i) {
        const int launches = std::max(1, static_cast<int>(std::ceil(steady_block_ms / estimate[i])));
        clock.pause_for(std::min(launches, batch_launches));
        clock.span(contenders[i], launches);
        const Span block = clock.finish()[0];
        result.ms[i].push_back(block.ms / launches);
        result.sm[i] += block.sm;
      }
  } else {
    if (round_ms >= long_round_ms)
      for (double done = 0; done < settling_ms; done += round_ms) {
        for (const Contender& contender : contenders) clock.span(contender, 1);
        clock.finish();
      }
    const int most = std::min(batch_launches / count, static_cast<int>(batch_budget_ms / round_ms));
    const int batch = std::clamp(most, 1, rounds);
    clock.pause_for(batch * count);
    std::vector<int> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::mt19937 random(pace.sitting);
    for (int done = 0; done < rounds; done += batch) {
      std::vector<int> queued;
      for (int round = done; round < std::min(done + batch, rounds); ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (const int i : order) {
          clock.span(contenders[i], 1);
          queued.push_back(i);
        }
      }
      const std::vector<Span> spans = clock.finish();
      for (size_t j = 0; j < spans.size(); ++j) {
        result.ms[queued[j]].push_back(spans[j].ms);
        result.sm[queued[j]] += spans[j].sm;
      }
    }
  }
  result.gpu = sampler.finish();
  return result;
}

}  // namespace ladder
