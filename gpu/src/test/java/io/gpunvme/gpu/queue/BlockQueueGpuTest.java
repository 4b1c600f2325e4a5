package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Blocks of several widths, and a warp after them, read an embedded SSD through their own queues.
 */
@Tag("gpu")
@Timeout(100)
class BlockQueueGpuTest {
  private static final int BLOCK = 512;
  private static final int BLOCKS = 16_384;
  private static final int QUEUES = 2;
  private static final int ENDED_ONCE = 1 << 16;

  /** Queue i reads the blocks i, i + 2, i + 4 and so on, each to its place in the buffer. */
  private static final String SOURCE =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      class Reads {
       public:
        __device__ Reads(const Buffer* buffer, u32 nsid, u32 blocks, u32* taken, u32* ends)
            : buffer(buffer), nsid(nsid), blocks(blocks), taken(taken + blockIdx.x), ends(ends) {}

        __device__ bool take(bool wanted, Command& c) {
          u32 mask = warp::ballot(warp::kFull, wanted);
          u32 first = warp::lane() == 0 ? mem::fetch_add(taken, warp::popcount(mask)) : 0;
          u32 n = warp::shuffle(warp::kFull, first, 0) + warp::rank(mask);
          u32 block = blockIdx.x + n * gridDim.x;
          if (!wanted || block >= blocks) {
            return false;
          }
          c = {opcode::kRead, nsid, block, 1, 0, 0, 0, ~block};
          prp::entries(*buffer, block * 512ull, 512, c.prp1, c.prp2);
          return true;
        }

        // Ends above, the status below.
        __device__ void done(bool valid, u32 user, u64 slba, Status s) {
          if (valid) {
            mem::fetch_add(ends + ~user, 0x10000u + (slba == ~user ? s : 0x7FFFu));
          }
        }

       private:
        const Buffer* buffer;
        u32 nsid;
        u32 blocks;
        u32* taken;
        u32* ends;
      };

      extern "C" __global__ void __launch_bounds__(1024) by_block(Queue* queues, const Buffer* buffer, u32 nsid,
                                                                  u32 blocks, u32* taken, u32* ends) {
        __shared__ BlockQueue::Shared shared;
        Reads reads(buffer, nsid, blocks, taken, ends);
        BlockQueue queue(queues + blockIdx.x, shared);
        queue.run(reads, reads);
        queue.close();
      }

      extern "C" __global__ void by_warp(Queue* queues, const Buffer* buffer, u32 nsid, u32 blocks, u32* taken, u32* ends) {
        Reads reads(buffer, nsid, blocks, taken, ends);
        ExclusiveQueue queue(queues + blockIdx.x);
        queue.run(reads, reads);
        queue.close();
      }
      """;

  private static GpuAccelerator gpu;
  private static CudaFunction byBlock;
  private static CudaFunction byWarp;
  private static CudaStream stream;

  @BeforeAll
  static void open() {
    gpu = TestGpu.open();
    try {
      // Everything is loaded before a kernel runs; the accelerator frees it.
      GpuModule module = GpuModule.compile(gpu, "block.cu", SOURCE);
      byBlock = module.function("by_block");
      byWarp = module.function("by_warp");
    } catch (CudaNotFoundException e) {
      Assumptions.abort(e.getMessage());
    }
    stream = gpu.context().stream();
  }

  @AfterAll
  static void close() {
    if (gpu != null) {
      gpu.close();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "HOST, 32, 256, ''",
    "HOST, 128, 256, ''",
    "HOST, 128, 31, ''",
    "HOST, 1024, 512, ''",
    "VRAM, 96, 1, ''",
    "VRAM, 256, 512, ''",
    "HOST, 128, 256, duplicate on io p=0.01;reorder=8 on io p=0.1;torn on io p=0.001",
    "VRAM, 256, 100, duplicate on io p=0.01;reorder=8 on io p=0.1",
  })
  void everyBlockArrivesOnce(Placement placement, int threads, int depth, String faults) {
    ControllerOptions options =
        ControllerOptions.builder().ioTimeout(Duration.ofSeconds(10)).build();
    String address = "sim:latency=0,lba=%d,size=%d,workers=2".formatted(BLOCK, BLOCKS * BLOCK);
    try (Device device = Device.open(DeviceAddress.parse(address), options, faults);
        DeviceQueues queues =
            new DeviceQueues(
                device.controller(), gpu, DeviceQueueOptions.exclusive(placement, QUEUES, depth));
        DeviceBuffer data = placement.allocate(gpu, (long) BLOCKS * BLOCK);
        BufferRegistration buffer = BufferRegistration.create(device.controller(), gpu, data);
        Arena arena = Arena.ofConfined()) {
      MemorySegment medium =
          ((SimulatedController) device.controller().function()).mediaMemory(1).orElseThrow();
      SplittableRandom random = new SplittableRandom(depth);
      for (long at = 0; at < medium.byteSize(); at += Long.BYTES) {
        DeviceLayout.setLong(medium, at, random.nextLong());
      }
      // The same queues for blocks, a warp, and blocks again.
      for (CudaFunction kernel : List.of(byBlock, byWarp, byBlock)) {
        MemorySegment zeroes = arena.allocate((long) BLOCKS * BLOCK);
        data.copyFromHost(zeroes, 0);
        read(kernel, kernel == byWarp ? 32 : threads, queues, buffer);
        MemorySegment got = arena.allocate((long) BLOCKS * BLOCK);
        data.copyToHost(0, got);
        assertThat(got.mismatch(medium)).as("first wrong byte").isEqualTo(-1);
      }
      QueueCounters c = queues.counters();
      assertThat(c.submitted()).isEqualTo(3 * BLOCKS);
      assertThat(c.completed()).isEqualTo(3 * BLOCKS);
      assertThat(c.failures() + c.timeouts() + c.late() + c.unknown()).isZero();
      assertThat(c.stale() > 0).isEqualTo(!faults.isEmpty());
    }
  }

  private static void read(
      CudaFunction kernel, int threads, DeviceQueues queues, BufferRegistration buffer) {
    try (DeviceBuffer counts = gpu.allocate((long) (QUEUES + BLOCKS) * Integer.BYTES);
        Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate((long) (QUEUES + BLOCKS) * Integer.BYTES, Long.BYTES);
      counts.copyFromHost(host, 0);
      stream.launch(
          kernel,
          LaunchShape.of(QUEUES, threads),
          new KernelArguments()
              .addLong(queues.deviceAddress())
              .addLong(buffer.deviceAddress())
              .addInt(1)
              .addInt(BLOCKS)
              .addLong(counts.deviceAddress())
              .addLong(counts.deviceAddress() + QUEUES * (long) Integer.BYTES));
      KernelWait wait = new KernelWait(List.of(queues));
      wait.await(stream::isIdle, () -> false);
      assertThat(wait.hung()).isFalse();
      counts.copyToHost(0, host);
      for (int block = 0; block < BLOCKS; block++) {
        assertThat(DeviceLayout.getInt(host, (long) (QUEUES + block) * Integer.BYTES))
            .as("ends and status of block %d, %s", block, queues.counters())
            .isEqualTo(ENDED_ONCE);
      }
    }
  }
}
