// Locks that the threads of one warp contend for. Since Volta each thread makes progress by itself, so the one that has the
// lock gives it back, though its neighbours spin.
#include "check.h"

__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

/// Counts one more, and stays there for a while.
__device__ void critical(volatile int* counter) {
  const int before = *counter;
  for (int i = 0; i < 10; ++i)
    if (*counter != before) return;  // somebody else is here
  *counter = before + 1;
}

__global__ void spin(int* mutex, int* counter) {
  lock(mutex);
  critical(counter);
  unlock(mutex);
}

__global__ void spin_with_pauses(int* mutex, int* counter) {
  for (unsigned pause = 8; atomicCAS(mutex, 0, 1) != 0; pause = min(2 * pause, 256U)) __nanosleep(pause);
  __threadfence();
  critical(counter);
  unlock(mutex);
}

__global__ void until_done(int* mutex, int* counter) {
  for (bool done = false; !done;) {
    if (atomicCAS(mutex, 0, 1) != 0) continue;
    __threadfence();
    critical(counter);
    unlock(mutex);
    done = true;
  }
}

/// The critical section at the end of the loop, which ends with break.
__global__ void until_break(int* mutex, int* counter) {
  for (;;) {
    if (atomicExch(mutex, 1) == 0) {
      __threadfence();
      critical(counter);
      unlock(mutex);
      break;
    }
  }
  __syncwarp();
}

/// Tickets: each thread waits for its turn.
__global__ void tickets(int* next, int* counter) {
  const int mine = atomicAdd(next, 1);
  volatile int* const serving = next + 1;
  while (*serving != mine) {
  }
  __threadfence();
  critical(counter);
  __threadfence();
  *serving = mine + 1;
}

/// A lock in shared memory, of one warp.
__global__ void shared_lock(int*, int* counter) {
  __shared__ int mutex, count;
  if (threadIdx.x == 0) mutex = count = 0;
  __syncthreads();
  lock(&mutex);
  critical(&count);
  unlock(&mutex);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(counter, count);
}

int main() {
  int* words;
  CHECK(cudaMalloc(&words, 3 * sizeof(int)));
  const auto count = [&](auto kernel, int blocks, int threads) {
    CHECK(cudaMemset(words, 0, 3 * sizeof(int)));
    kernel<<<blocks, threads>>>(words, words + 2);
    CHECK(cudaGetLastError());
    int counted;
    CHECK(cudaMemcpy(&counted, words + 2, sizeof(int), cudaMemcpyDeviceToHost));
    expect_equal(threads, counted, blocks * threads);
  };
  for (const int threads : {1, 7, 32, 96})
    for (const int blocks : {1, 3}) {
      count(spin, blocks, threads);
      count(spin_with_pauses, blocks, threads);
      count(until_done, blocks, threads);
      count(until_break, blocks, threads);
      count(tickets, blocks, threads);
      if (threads <= 32) count(shared_lock, blocks, threads);
    }
  return passed();
}
