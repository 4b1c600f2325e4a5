package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.ContextAttachment;
import io.gpunvme.cuda.Hold;
import io.gpunvme.cuda.library.Downcall;
import io.gpunvme.cuda.library.NativeFunction;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Requests that are handed to cuFile together. One round at a time: {@link #submit}, {@link #await}
 * until all have ended, and again. Files and memory of a round stay open until its requests have
 * ended.
 *
 * <p>Safe for all threads, which wait for each other.
 */
public final class CuFileBatch implements AutoCloseable {
  private static final MethodHandle SET_UP = CuFileCalls.status(ADDRESS, JAVA_INT);
  private static final MethodHandle SUBMIT =
      CuFileCalls.status(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_INT);
  private static final MethodHandle GET_STATUS =
      CuFileCalls.status(JAVA_LONG, JAVA_INT, ADDRESS, ADDRESS, ADDRESS);
  private static final MethodHandle CANCEL = CuFileCalls.status(JAVA_LONG);
  private static final MethodHandle DESTROY = Downcall.of(FunctionDescriptor.ofVoid(JAVA_LONG));

  // CUfileIOParams_t: mode (1: a batch), address, offsets, size, handle, opcode, cookie.
  static final long REQUEST_BYTES = 64;
  private static final int MODE_BATCH = 1;

  // CUfileIOEvents_t: cookie, status, result.
  static final long EVENT_BYTES = 24;
  private static final long EVENT_STATUS = 8;
  private static final long EVENT_RESULT = 16;

  /** How long a close waits for requests that were cancelled, in seconds. */
  private static final int CLOSE_SECONDS = 60;

  private final CuFileDriver driver;
  private final CuFileCalls calls;
  private final long handle;
  private final int capacity;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment parameters;
  private final MemorySegment events;
  private final MemorySegment count;
  private final MemorySegment timeout;

  /** By place in the round; null once it has ended. */
  private final @Nullable CuFileRequest[] round;

  private final @Nullable Hold[] holds;
  private int outstanding;
  private final ContextAttachment attachment;

  private CuFileBatch(CuFileDriver driver, long handle, int capacity) {
    this.driver = driver;
    this.handle = handle;
    this.capacity = capacity;
    calls = driver.calls();
    parameters = arena.allocate(REQUEST_BYTES * capacity, Long.BYTES);
    events = arena.allocate(EVENT_BYTES * capacity, Long.BYTES);
    count = arena.allocate(JAVA_INT);
    timeout = arena.allocate(2L * Long.BYTES, Long.BYTES);
    round = new CuFileRequest[capacity];
    holds = new Hold[capacity];
    attachment = driver.adopt("a batch of cuFile", this::end);
  }

  static CuFileBatch open(CuFileDriver driver, int capacity) {
    if (capacity < 1) {
      throw new IllegalArgumentException("a batch of " + capacity);
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(JAVA_LONG);
      driver
          .calls()
          .run(
              driver.calls().function("cuFileBatchIOSetUp"),
              () -> "of " + capacity,
              f -> (long) SET_UP.invokeExact(f, result, capacity));
      return new CuFileBatch(driver, result.get(JAVA_LONG, 0), capacity);
    }
  }

  /** Most requests of a round. */
  public int capacity() {
    return capacity;
  }

  /** How many requests have not ended. */
  public synchronized int outstanding() {
    return outstanding;
  }

  /**
   * Starts a round.
   *
   * @param requests at most {@link #capacity}
   * @throws IllegalStateException if the round before has not ended
   * @throws CuFileException if it could not be started; nothing of it runs then
   */
  public synchronized void submit(List<CuFileRequest> requests) {
    if (outstanding > 0) {
      throw new IllegalStateException(outstanding + " requests of this batch have not ended");
    }
    if (requests.size() > capacity) {
      throw new IllegalArgumentException(requests.size() + " requests in a batch of " + capacity);
    }
    if (requests.isEmpty()) {
      return;
    }
    int entries = requests.size();
    try (Hold _ = attachment.hold()) {
      for (int i = 0; i < entries; i++) {
        put(i, requests.get(i));
      }
      calls.run(
          calls.function("cuFileBatchIOSubmit"),
          () -> entries + " requests",
          f -> (long) SUBMIT.invokeExact(f, handle, entries, parameters, 0));
      outstanding = entries;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::letGo);
      throw e;
    }
  }

  private void put(int place, CuFileRequest request) {
    Hold file = request.file().hold();
    holds[place] = file.and(CloseAll.orClose(() -> driver.use(request.memory()), file::close));
    round[place] = request;
    MemorySegment entry = parameters.asSlice(place * REQUEST_BYTES, REQUEST_BYTES);
    entry.set(JAVA_INT, 0, MODE_BATCH);
    entry.set(JAVA_LONG, 8, request.memory().address());
    entry.set(JAVA_LONG, 16, request.range().fileOffset());
    entry.set(JAVA_LONG, 24, request.range().bufferOffset());
    entry.set(JAVA_LONG, 32, request.range().bytes());
    entry.set(JAVA_LONG, 40, request.file().number());
    entry.set(JAVA_INT, 48, request.writing() ? 1 : 0);
    entry.set(JAVA_LONG, 56, place + 1); // The user's cookie is kept here.
  }

  /**
   * Waits until some requests have ended.
   *
   * @param least how many to wait for; fewer come back when the time is over
   * @return those that have ended since the last call
   */
  public synchronized List<CuFileCompletion> await(int least, long time, TimeUnit unit) {
    if (outstanding == 0) {
      return List.of();
    }
    try (Hold _ = attachment.hold()) {
      return collect(Math.min(least, outstanding), unit.toNanos(time));
    }
  }

  private List<CuFileCompletion> collect(int least, long nanos) {
    timeout.set(JAVA_LONG, 0, TimeUnit.NANOSECONDS.toSeconds(nanos));
    timeout.set(JAVA_LONG, Long.BYTES, nanos % TimeUnit.SECONDS.toNanos(1));
    count.set(JAVA_INT, 0, outstanding);
    calls.run(
        calls.function("cuFileBatchIOGetStatus"),
        () -> "of " + outstanding + " requests",
        f -> (long) GET_STATUS.invokeExact(f, handle, least, count, events, timeout));
    List<CuFileCompletion> ended = new ArrayList<>();
    for (int i = 0; i < Math.min(count.get(JAVA_INT, 0), capacity); i++) {
      addEnded(events.asSlice(i * EVENT_BYTES, EVENT_BYTES), ended);
    }
    return ended;
  }

  private void addEnded(MemorySegment event, List<CuFileCompletion> ended) {
    int place = (int) event.get(JAVA_LONG, 0) - 1;
    int status = event.get(JAVA_INT, EVENT_STATUS);
    boolean over = status >= CuFileCompletion.Status.INVALID.number();
    CuFileRequest request = place >= 0 && place < capacity ? round[place] : null;
    if (over && request != null) {
      ended.add(
          new CuFileCompletion(
              request.cookie(),
              CuFileCompletion.Status.of(status),
              event.get(JAVA_LONG, EVENT_RESULT)));
      letGo(place);
      outstanding--;
    }
  }

  /** Asks for the end of the round; {@link #await} says how each request ended. */
  public synchronized void cancel() {
    if (outstanding > 0) {
      try (Hold _ = attachment.hold()) {
        callCancel();
      }
    }
  }

  private void callCancel() {
    calls.run(
        calls.function("cuFileBatchIOCancel"),
        () -> "of " + outstanding + " requests",
        f -> (long) CANCEL.invokeExact(f, handle));
  }

  private void letGo() {
    for (int i = 0; i < capacity; i++) {
      letGo(i);
    }
  }

  private void letGo(int place) {
    Hold hold = holds[place];
    if (hold != null) {
      hold.close();
    }
    holds[place] = null;
    round[place] = null;
  }

  private synchronized void end() {
    NativeFunction destroy = calls.function("cuFileBatchIODestroy");
    try {
      drain();
    } catch (CuFileException e) {
      // Destroying the batch is what is left; it gives back all of its requests.
    }
    try {
      DESTROY.invokeExact(destroy.address(), handle);
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
    letGo();
    outstanding = 0;
    arena.close();
  }

  private void drain() {
    if (outstanding > 0) {
      callCancel();
    }
    for (int i = 0; i < CLOSE_SECONDS && outstanding > 0; i++) {
      collect(outstanding, TimeUnit.SECONDS.toNanos(1));
    }
  }

  /** Cancels what has not ended, waits for it, and ends the batch; a second call does nothing. */
  @Override
  public void close() {
    driver.disown(attachment);
  }
}
