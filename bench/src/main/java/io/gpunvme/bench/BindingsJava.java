package io.gpunvme.bench;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BlockPattern;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The Java side: {@code BindingsJava ACCELERATOR URI BYTES}. {@code bindings.c} says what it is
 * told and answers; what it does is the same, by the Java API and in a process of its own.
 */
final class BindingsJava implements AutoCloseable {
  private static final int PIECE = 64 << 20;
  private static final long WAKING = 64 << 20;
  private static final int CALLS = 100_000;
  private static final int ROUNDS = 10;

  /** Each side has a number of its own here, so that none takes another's data for its own. */
  private static final long PATTERN = 1L << 48;

  /** What the C API's handles begin with, about. */
  private static final long HANDLE = 0x6E76_0000_0001L;

  private final GpuStorage storage;
  private final DeviceBuffer target;
  private final DeviceBuffer waking;
  private final DeviceBuffer piece;

  /** As the C API finds what a handle stands for. */
  private final Map<Long, CompletableFuture<?>> requests = new ConcurrentHashMap<>();

  private BindingsJava(Accelerator accelerator, String uri, long bytes) {
    // As io.gpunvme.capi opens it for GPUNVME_WRITE.
    storage =
        GpuStorage.open(
            StorageAddress.parse(uri),
            accelerator,
            StorageOptions.defaults().withForeignCuda(true).withWrite(true));
    if (storage.size() < bytes) {
      throw new BenchException(uri + " has " + storage.size() + " bytes");
    }
    target = accelerator.allocate(bytes);
    waking = accelerator.allocate(Math.min(bytes, WAKING));
    piece = accelerator.allocatePinned(PIECE);
    writePattern();
    CompletableFuture<?> request = storage.readAsync(0, waking, 0, 1);
    request.join();
    requests.put(HANDLE, request);
  }

  /** See the class. */
  public static void main(String[] args) throws IOException {
    BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    boolean good = true;
    try (Accelerator accelerator = Accelerators.open(args[0]).accelerator();
        BindingsJava side = new BindingsJava(accelerator, args[1], Long.parseLong(args[2]))) {
      System.out.println("ready");
      String command = commands.readLine();
      while (command != null && !command.equals("end")) {
        System.out.println(side.answer(command));
        command = commands.readLine();
      }
    } catch (RuntimeException e) {
      System.out.println("error " + String.valueOf(e).lines().findFirst().orElse(""));
      good = false;
    }
    System.exit(good ? 0 : 1);
  }

  private String answer(String command) {
    return switch (command) {
      case "read" -> Long.toString(timedRead());
      case "call" -> String.format(Locale.ROOT, "%.2f", timedCall());
      default -> throw new BenchException("unknown command " + command);
    };
  }

  private long timedRead() {
    wipe();
    // An embedded controller's threads that had nothing to do sleep up to a millisecond: this wakes
    // all.
    storage.read(0, waking, 0, waking.size());
    long begin = System.nanoTime();
    storage.read(0, target, 0, target.size());
    long nanos = System.nanoTime() - begin;
    compare();
    return nanos;
  }

  private double timedCall() {
    long begin = System.nanoTime();
    int sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
      sum |= polls();
    }
    long nanos = System.nanoTime() - begin;
    if (sum != 0) {
      throw new BenchException("polling: " + sum);
    }
    return (double) nanos / (ROUNDS * CALLS);
  }

  /** A method of its own, so that the compiler takes it as a whole. */
  private int polls() {
    int sum = 0;
    for (int i = 0; i < CALLS; i++) {
      sum |= poll(HANDLE);
    }
    return sum;
  }

  /** What gpunvme_poll does when it has come to Java: 0 if a request is over and succeeded. */
  private int poll(long handle) {
    CompletableFuture<?> request = requests.get(handle);
    if (request == null) {
      throw new BenchException("no request");
    }
    try {
      request.get(0, TimeUnit.NANOSECONDS);
      return 0;
    } catch (TimeoutException e) {
      return 1;
    } catch (ExecutionException e) {
      return -1;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return -1;
    }
  }

  private static long word(long index) {
    return BlockPattern.hash(PATTERN + index);
  }

  private MemorySegment pieceAt(long at) {
    return piece.segment().asSlice(0, Math.min(PIECE, target.size() - at));
  }

  private void writePattern() {
    for (long at = 0; at < target.size(); at += PIECE) {
      MemorySegment words = pieceAt(at);
      for (long i = 0; i < words.byteSize(); i += Long.BYTES) {
        words.set(JAVA_LONG, i, word((at + i) / Long.BYTES));
      }
      target.copyFromHost(words, at);
    }
    storage.write(0, target, 0, target.size());
  }

  private void wipe() {
    piece.segment().fill((byte) 0);
    for (long at = 0; at < target.size(); at += PIECE) {
      target.copyFromHost(pieceAt(at), at);
    }
  }

  private void compare() {
    for (long at = 0; at < target.size(); at += PIECE) {
      MemorySegment words = pieceAt(at);
      target.copyToHost(at, words);
      for (long i = 0; i < words.byteSize(); i += Long.BYTES) {
        long should = word((at + i) / Long.BYTES);
        if (words.get(JAVA_LONG, i) != should) {
          throw new BenchException(
              "wrong data: the word at byte %d is %016x and not %016x"
                  .formatted(at + i, words.get(JAVA_LONG, i), should));
        }
      }
    }
  }

  @Override
  public void close() {
    storage.close();
    target.close();
    waking.close();
    piece.close();
  }
}
