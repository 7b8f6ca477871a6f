// A transpose over a grid of two dimensions, ragged at both edges; a struct as a parameter.
#include <vector>

#include "check.h"

struct Matrix {
  const float* data;
  short rows;
  int columns;
};

__global__ void transpose(Matrix in, float* out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < in.rows && column < in.columns) out[column * in.rows + row] = in.data[row * in.columns + column];
}

int main() {
  const int rows = 45, columns = 71;
  std::vector<float> in(rows * columns), out(rows * columns);
  for (int i = 0; i < rows * columns; ++i) in[i] = i;
  float *from, *to;
  CHECK(cudaMalloc(&from, in.size() * sizeof(float)));
  CHECK(cudaMalloc(&to, in.size() * sizeof(float)));
  CHECK(cudaMemcpy(from, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  const dim3 block(16, 8);
  const dim3 grid((columns + block.x - 1) / block.x, (rows + block.y - 1) / block.y);
  transpose<<<grid, block>>>({from, rows, columns}, to);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), to, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) expect_equal(j * rows + i, out[j * rows + i], in[i * columns + j]);
  return passed();
}
