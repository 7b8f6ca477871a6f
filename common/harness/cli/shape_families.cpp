#include "common/harness/cli/shapes.h"

namespace ladder {

const std::vector<ShapeFamily>& shape_families() {
  static const std::vector<ShapeFamily> families = {
      // M = N = K: the curve that everyone draws.
      {"square",
       {{256, 256, 256},
        {512, 512, 512},
        {768, 768, 768},
        {1024, 1024, 1024},
        {1536, 1536, 1536},
        {2048, 2048, 2048},
        {3072, 3072, 3072},
        {4096, 4096, 4096},
        {6144, 6144, 6144},
        {8192, 8192, 8192}}},
      // Matrix products of a transformer layer: projections of a decoder with hidden size 4096 and feed-forward size 14336 (Llama 3 8B: hidden_size,
      // intermediate_size, 1024 key and value columns, 128256 words), at a prompt's and at a batch's number of tokens.
      {"llm",
       {{4096, 6144, 4096},
        {4096, 4096, 4096},
        {4096, 28672, 4096},
        {4096, 4096, 14336},
        {128, 4096, 4096},
        {128, 28672, 4096},
        {128, 4096, 14336},
        {512, 128256, 4096}}},
      // Sizes beside tile multiples: edges, K with a residue, a last wave that is nearly empty. Columns are multiples of 4, so that
      // rungs with 16-byte rows take part.
      {"tails",
       {{1020, 1020, 1020},
        {1028, 1028, 1028},
        {2044, 2052, 2048},
        {2052, 2044, 2044},
        {3001, 3004, 3004},
        {4097, 4100, 4100},
        {4224, 4096, 4096},
        {4352, 4096, 4096}}},
      // Tall, wide, short K, long K.
      {"skinny",
       {{16384, 128, 4096},
        {128, 16384, 4096},
        {8192, 8192, 128},
        {8192, 8192, 32},
        {256, 256, 65536},
        {512, 512, 16384},
        {65536, 64, 512},
        {64, 65536, 512}}},
  };
  return families;
}

}  // namespace ladder
