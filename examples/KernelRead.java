import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.cuda.Nvrtc;
import io.gpunvme.cuda.NvrtcSource;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.io.File;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * A kernel that reads an SSD by itself: each of its threads chooses a block, reads it and adds up
 * its words. The CPU does the same in its own memory and compares.
 *
 * <p>Compiling needs NVRTC or nvcc, running needs a GPU; the last line says what was done. Exit
 * codes: 0 done and right (without a GPU: compiled), 1 failed, 3 there is no compiler.
 */
public final class KernelRead {
  private static final String KERNEL =
      """
      #include "gpunvme/gpunvme.cuh"
      using namespace gpunvme;

      struct Answer {
        u64 block;  // the block that this thread chose
        u64 sum;    // of its words
        u64 status; // 0: it was read
      };

      extern "C" __global__ void sum_blocks(const Storage* storage, Answer* answers, u32 threads) {
        u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
        if (thread >= threads) {
          return;
        }
        const Namespace& ns = storage->namespaces[0];
        const Buffer& buffer = storage->buffer(0, 0);
        u64 offset = static_cast<u64>(thread) << ns.block_shift; // this thread's place in the buffer
        Answer a = {thread * 2654435761ull % ns.blocks, 0, 0};
        a.status = read(ns, storage->queue(ns, thread / 32), a.block, 1, buffer, offset);
        if (a.status == status::kSuccess) {
          const char* place = static_cast<const char*>(buffer.memory) + offset;
          const volatile u64* words = reinterpret_cast<const volatile u64*>(place);
          for (u64 i = 0; i < (1ull << ns.block_shift) / sizeof(u64); i++) {
            a.sum += words[i];
          }
        }
        answers[thread] = a;
      }
      """;

  private static final int THREADS = 1024;
  private static final int BLOCK_THREADS = 128;
  private static final int ANSWER_BYTES = 24;
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 4096;
  private static final String SSD = "sim:size=16MiB,lba=4096,latency=0";
  private static final Duration LIMIT = Duration.ofSeconds(20);

  private KernelRead() {}

  /** PTX and who made it. */
  private record Compiled(byte[] ptx, String compiler) {}

  public static void main(String[] arguments) throws IOException, InterruptedException {
    Compiled kernel;
    try {
      kernel = compile();
    } catch (CudaNotFoundException e) {
      System.err.println(e.getMessage());
      System.exit(3);
      return;
    }
    if (!new String(kernel.ptx(), StandardCharsets.US_ASCII).contains(".entry sum_blocks(")) {
      throw new IllegalStateException("the PTX has no kernel sum_blocks");
    }
    System.out.println("compiled by " + kernel.compiler());
    Accelerators.Choice choice = Accelerators.best();
    try (Accelerator accelerator = choice.accelerator()) {
      if (accelerator instanceof GpuAccelerator gpu) {
        run(gpu, kernel.ptx());
        System.out.printf("ran on %s: %d threads read, all sums are right%n", gpu.name(), THREADS);
      } else {
        System.out.println("did not run: " + choice.reason());
      }
    }
  }

  // ---- with a GPU

  private static void run(GpuAccelerator gpu, byte[] ptx) {
    byte[] contents = new byte[BLOCKS * BLOCK];
    new Random(1).nextBytes(contents);
    try (GpuModule module = GpuModule.load(gpu, ptx);
        GpuStorage storage =
            GpuStorage.open(
                StorageAddress.parse(SSD), gpu, StorageOptions.defaults().withWrite(true));
        DeviceBuffer data = gpu.allocate(contents.length);
        DeviceBuffer answers = gpu.allocate(THREADS * ANSWER_BYTES);
        KernelStorage kernels = storage.forKernels(KernelStorageOptions.in(Placement.VRAM_DATA))) {
      data.copyFromHost(MemorySegment.ofArray(contents), 0);
      storage.write(0, data, 0, contents.length);
      // The kernel's buffer 0. What was written from there is not to be found there again.
      data.copyFromHost(MemorySegment.ofArray(new byte[contents.length]), 0);
      kernels.register(data);
      CudaStream stream = gpu.context().stream();
      stream.launch(
          module.function("sum_blocks"),
          LaunchShape.of(THREADS / BLOCK_THREADS, BLOCK_THREADS),
          new KernelArguments()
              .addLong(kernels.deviceHandle())
              .addLong(answers.deviceAddress())
              .addInt(THREADS));
      if (!kernels.await(stream::isIdle, LIMIT)) {
        throw new IllegalStateException("the kernel was told to stop: " + kernels.errors());
      }
      check(answers, contents);
    }
  }

  private static void check(DeviceBuffer answers, byte[] contents) {
    ByteBuffer words = ByteBuffer.wrap(contents).order(ByteOrder.LITTLE_ENDIAN);
    byte[] told = new byte[THREADS * ANSWER_BYTES];
    answers.copyToHost(0, MemorySegment.ofArray(told));
    ByteBuffer answer = ByteBuffer.wrap(told).order(ByteOrder.LITTLE_ENDIAN);
    for (long thread = 0; thread < THREADS; thread++) {
      long block = answer.getLong();
      long sum = answer.getLong();
      int status = (int) answer.getLong();
      if (status != 0) {
        throw new IllegalStateException("thread " + thread + ": " + DeviceStatus.describe(status));
      }
      long expected = 0;
      int first = (int) (thread * 2654435761L % BLOCKS) * BLOCK;
      for (int i = 0; i < BLOCK; i += Long.BYTES) {
        expected += words.getLong(first + i);
      }
      if (block * BLOCK != first || sum != expected) {
        throw new IllegalStateException("thread " + thread + " came to another sum than the CPU");
      }
    }
  }

  // ---- compilers

  /** By NVRTC if it is there, which needs no GPU, else by nvcc. */
  private static Compiled compile() throws IOException, InterruptedException {
    try {
      Nvrtc nvrtc = Nvrtc.load();
      NvrtcSource source = new NvrtcSource("sum_blocks.cu", KERNEL, GpuModule.headers());
      List<String> options = List.of("--gpu-architecture=compute_75", "--std=c++17");
      return new Compiled(nvrtc.compile(source, options).ptx(), "NVRTC " + nvrtc.version());
    } catch (CudaNotFoundException e) {
      for (String folder : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
        Path nvcc = Path.of(folder, "nvcc");
        if (Files.isExecutable(nvcc)) {
          return new Compiled(compile(nvcc), nvcc.toString());
        }
      }
      throw new CudaNotFoundException("no nvcc on PATH; " + e.getMessage());
    }
  }

  private static byte[] compile(Path nvcc) throws IOException, InterruptedException {
    Path folder = temporary(Files.createTempDirectory("kernel"));
    temporary(Files.createDirectory(folder.resolve("gpunvme")));
    for (Map.Entry<String, String> header : GpuModule.headers().entrySet()) {
      Files.writeString(temporary(folder.resolve(header.getKey())), header.getValue());
    }
    Files.writeString(temporary(folder.resolve("sum_blocks.cu")), KERNEL);
    Path ptx = temporary(folder.resolve("sum_blocks.ptx"));
    List<String> command =
        List.of(nvcc.toString(), "-ptx", "-arch=compute_75", "-std=c++17", "-I.", "sum_blocks.cu");
    int code = new ProcessBuilder(command).inheritIO().directory(folder.toFile()).start().waitFor();
    if (code != 0) {
      throw new IllegalStateException("nvcc ended with code " + code);
    }
    return Files.readAllBytes(ptx);
  }

  /** Is deleted at the end. */
  private static Path temporary(Path file) {
    file.toFile().deleteOnExit();
    return file;
  }
}
