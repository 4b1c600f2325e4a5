package io.gpunvme.storage.layer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaContext;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.storage.StreamGate;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;

/**
 * Streams of a GPU, which wait for words in pinned memory.
 *
 * <p>Streams share the GPU's hardware queues, and one that waits holds up those that came to the
 * same queue later. Reading needs streams too. So each stream is tried once: it waits, and a short
 * read must end meanwhile.
 */
final class CudaStreams implements LayerStreams<CudaStream> {
  /** Words lie in cache lines of their own: the GPU asks for them again and again. */
  private static final long STRIDE = 128;

  private static final double NANOS_PER_MILLI = 1e6;

  /** Many times what the reads before a short one take. */
  private static final long TRIAL_MILLIS = 2000;

  private final GpuAccelerator accelerator;
  private final Supplier<CompletableFuture<?>> trial;
  private final DeviceBuffer words;
  private final StreamGate trialGate;

  /** All there are; guarded by itself, as the idle ones are. */
  private final List<EventUse> uses = new ArrayList<>();

  private final Deque<EventUse> idle = new ArrayDeque<>();

  /**
   * Streams that wait by themselves. Which hardware queues more of them share changes while they
   * wait: with 24 on an H200 reads were held up that had passed the trial with each of them.
   */
  private static final int MOST_WAITING = 2;

  private final Map<CudaStream, Boolean> known = new WeakHashMap<>();
  private int trials;

  /**
   * @param trial begins a short read to try a stream, to a place that nobody else uses
   */
  CudaStreams(GpuAccelerator accelerator, Supplier<CompletableFuture<?>> trial, int slots) {
    this.accelerator = accelerator;
    this.trial = trial;
    words = accelerator.allocatePinned(bytes(slots));
    trialGate = CloseAll.orClose(() -> new StreamGate(words, slots * STRIDE), words::close);
  }

  /** Pinned memory that so many slots need. */
  static long bytes(int slots) {
    return (slots + 1) * STRIDE;
  }

  long pinnedBytes() {
    return words.size();
  }

  @Override
  public Gate<CudaStream> gate(int slot) {
    return new WordGate(new StreamGate(words, slot * STRIDE));
  }

  private record WordGate(StreamGate gate) implements Gate<CudaStream> {
    @Override
    public void await(CudaStream stream, int turn) {
      gate.await(stream, turn);
    }

    @Override
    public void open(int turn) {
      gate.open(turn);
    }
  }

  /** A stream that is filled far ahead has many of them: each is taken again when it is over. */
  @Override
  public Use<CudaStream> use() {
    synchronized (uses) {
      EventUse there = idle.pollFirst();
      return there == null ? newUse(accelerator.context()) : there;
    }
  }

  private EventUse newUse(CudaContext context) {
    List<CudaEvent> made = new ArrayList<>();
    try {
      made.add(context.timingEvent());
      made.add(context.timingEvent());
      made.add(context.event());
      EventUse use = new EventUse(made.get(0), made.get(1), made.get(2));
      uses.add(use);
      return use;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, made, CudaEvent::close);
      throw e;
    }
  }

  private final class EventUse implements Use<CudaStream> {
    private final CudaEvent before;
    private final CudaEvent begin;
    private final CudaEvent end;

    EventUse(CudaEvent before, CudaEvent begin, CudaEvent end) {
      this.before = before;
      this.begin = begin;
      this.end = end;
    }

    @Override
    public void begin(CudaStream stream, Gate<CudaStream> gate, int turn) {
      stream.record(before);
      gate.await(stream, turn);
      stream.record(begin);
    }

    @Override
    public void end(CudaStream stream) {
      stream.record(end);
    }

    @Override
    public boolean isOver() {
      return end.isDone();
    }

    @Override
    public void awaitOver() {
      end.synchronize();
    }

    @Override
    public long waitedNanos() {
      return Math.round(begin.millisecondsSince(before) * NANOS_PER_MILLI);
    }

    @Override
    public void recycle() {
      synchronized (uses) {
        idle.addLast(this);
      }
    }

    void close() {
      CloseAll.each(Arrays.asList(before, begin, end), LayerLoader::closeQuietly);
    }
  }

  @Override
  public synchronized boolean mayWait(CudaStream stream) {
    Boolean there = known.get(stream);
    if (there != null) {
      return there;
    }
    long waiting = known.values().stream().filter(passed -> passed).count();
    if (waiting >= MOST_WAITING) {
      return false;
    }
    if (!stream.isIdle()) {
      // A trial would tell of the work before it.
      return false;
    }
    boolean passed = passes(stream);
    known.put(stream, passed);
    return passed;
  }

  private boolean passes(CudaStream stream) {
    trials++;
    trialGate.await(stream, trials);
    CompletableFuture<?> read = null;
    try {
      read = trial.get();
      read.get(TRIAL_MILLIS, TimeUnit.MILLISECONDS);
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (ExecutionException e) {
      // It was not held up.
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    } finally {
      trialGate.open(trials);
      if (read != null) {
        read.handle((_, _) -> true).join();
      }
      stream.synchronize();
    }
  }

  @Override
  public void close() {
    CloseAll.all(this::closeUses, () -> LayerLoader.closeQuietly(words));
  }

  private void closeUses() {
    synchronized (uses) {
      List<EventUse> all = List.copyOf(uses);
      uses.clear();
      idle.clear();
      CloseAll.each(all, EventUse::close);
    }
  }
}
