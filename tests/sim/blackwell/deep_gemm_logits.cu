// DeepGEMM's logits of multi-query attention for sm_100 in FP4 (kind::mxf4): of each query token the sum over 32 heads of a weight times the
// positive part of the heads' product with a key of 128 numbers, which have a power of two per 32. Tokens of the queries and keys are given.
#include <deep_gemm/impls/sm100_mqa_logits.cuh>

#include <cmath>

#include "deep_gemm_maps.h"
#include "operands.h"

constexpr int heads = 32, dim = 128, block_q = 128 / heads, split = 256, q_stages = 3, kv_stages = 10, sms = 148;

/// Rows of packed E2M1, and four exponents per row in a word.
struct Rows {
  int count;
  std::vector<int> values;
  std::vector<uint32_t> words;

  Rows(int count, int words_in_all, uint32_t seed)
      : count(count), values(integers(size_t(count) * dim, seed)), words(words_in_all, 0x7f7f7f7f) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] += uint32_t(i % 3) + (uint32_t(i % 2) << 16) - (uint32_t(i % 5 == 0) << 24);
  }
  std::vector<float> all() const {
    std::vector<float> all(values.size());
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = std::ldexp(float(values[i]), int(words[i / dim] >> i % dim / 32 * 8 & 255) - 127);
    return all;
  }
  CUtensorMap map(int box_rows) const {
    std::vector<uint8_t> bytes(values.size() / 2);
    for (size_t i = 0; i < values.size(); ++i) bytes[i / 2] |= uint8_t(e2m1_bits(values[i]) << i % 2 * 4);
    return map_of(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 0.5, copied(bytes), count, dim, box_rows, dim,
                  CU_TENSOR_MAP_SWIZZLE_64B);
  }
};

int main(int argc, char** argv) {
  if (argc != 4 || std::atoi(argv[3]) != dim) return 2;
  const int q_tokens = std::atoi(argv[1]), kv_tokens = std::atoi(argv[2]), aligned = (kv_tokens + 3) / 4 * 4;
  const Rows q(q_tokens * heads, q_tokens * heads, 1), kv(kv_tokens, aligned, 2);
  const std::vector<int> whole_weights = integers(size_t(q_tokens) * heads, 3);
  const std::vector<float> weights(whole_weights.begin(), whole_weights.end());
  // Each token sees the keys from a first one to a last one; what is written of others does not matter.
  std::vector<uint32_t> begin(q_tokens), end(q_tokens);
  for (int i = 0; i < q_tokens; ++i) {
    begin[i] = uint32_t(i % 7 * 3);
    end[i] = uint32_t(kv_tokens - i % 5);
  }
  const int stride = aligned + 2 * split, logit_rows = (q_tokens + block_q - 1) / block_q * block_q;
  std::vector<float> logits(size_t(logit_rows) * stride, NAN);
  float* const device_logits = copied(logits);
  const auto kernel =
      deep_gemm::sm100_mqa_logits<true, heads, dim, false, block_q, split, q_stages, kv_stages, sms, 128, 256, float>;
  using Storage = deep_gemm::layout::MQALogitsSharedStorage<true, heads, dim, block_q, split, q_stages, kv_stages, 3>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Storage));
  constexpr auto plain = CU_TENSOR_MAP_SWIZZLE_NONE;
  constexpr auto word = CU_TENSOR_MAP_DATA_TYPE_INT32;
  kernel<<<sms, 384, sizeof(Storage)>>>(
      q_tokens, kv_tokens, stride, copied(begin), copied(end), device_logits, q.map(block_q * heads),
      map_of(word, 4, copied(q.words), q_tokens, heads, block_q, heads, plain), kv.map(split),
      map_of(word, 4, copied(kv.words), 1, aligned, 1, split, plain),
      map_of(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, copied(weights), q_tokens, heads, block_q, heads, plain));
  if (cudaMemcpy(logits.data(), device_logits, logits.size() * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess)
    return 1;
  const std::vector<float> queries = q.all(), keys = kv.all();
  long wrong = 0;
  for (int i = 0; i < q_tokens; ++i)
    for (uint32_t j = begin[i]; j < end[i]; ++j) {
      float sum = 0;
      for (int head = 0; head < heads; ++head) {
        float product = 0;
        for (int k = 0; k < dim; ++k)
          product += queries[(size_t(i) * heads + head) * dim + k] * keys[size_t(j) * dim + k];
        sum += weights[i * heads + head] * std::max(product, 0.f);
      }
      wrong += !(logits[size_t(i) * stride + j] == sum);
    }
  std::printf("Error count: %ld\n", wrong);
  return wrong != 0;
}
