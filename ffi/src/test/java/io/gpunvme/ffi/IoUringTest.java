package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
final class IoUringTest {
  private static final int BLOCK = 4096;

  @TempDir private Path directory;
  private final Arena arena = Arena.ofConfined();
  private int fd = -1;

  @BeforeEach
  void openFile() {
    try {
      IoUring.open(1).close();
    } catch (IoUringUnavailableException e) {
      Assumptions.abort(e.getMessage());
    }
    fd =
        Posix.open(
            directory.resolve("file").toString(),
            Posix.O_RDWR | Posix.O_CREAT | Posix.O_CLOEXEC,
            0600);
  }

  @AfterEach
  void closeFile() {
    if (fd >= 0) {
      Posix.close(fd);
    }
    arena.close();
  }

  /** Block i of the file holds i in every byte. */
  private void fill(int blocks) {
    MemorySegment block = arena.allocate(BLOCK);
    for (int i = 0; i < blocks; i++) {
      Posix.pwrite(fd, block.fill((byte) i), (long) i * BLOCK);
    }
  }

  private static Map<Long, Integer> drain(IoUring ring) {
    Map<Long, Integer> results = new HashMap<>();
    while (ring.inFlight() > 0) {
      ring.await();
      ring.take((userData, result) -> assertThat(results.put(userData, result)).isNull());
    }
    return results;
  }

  @Test
  void manyReadsEachArriveWithTheirOwnUserData() {
    int blocks = 100;
    fill(blocks);
    MemorySegment into = arena.allocate((long) blocks * BLOCK);
    Map<Long, Integer> results = new HashMap<>();
    try (IoUring ring = IoUring.open(8)) {
      assertThat(ring.entries()).isEqualTo(8);
      for (int i = 0; i < 10 * blocks; i++) {
        int block = i % blocks;
        MemorySegment slot = into.asSlice((long) block * BLOCK, BLOCK);
        while (!ring.read(fd, slot, (long) block * BLOCK, ((long) i << 33) + i)) {
          ring.await();
          ring.take((userData, result) -> results.put(userData, result));
        }
      }
      results.putAll(drain(ring));
      assertThat(ring.take((userData, result) -> {})).isZero();
    }
    assertThat(results).hasSize(10 * blocks);
    assertThat(results.values()).containsOnly(BLOCK);
    assertThat(results).containsKey((999L << 33) + 999);
    for (int i = 0; i < blocks; i++) {
      assertThat(into.get(JAVA_BYTE, (long) i * BLOCK + 17)).isEqualTo((byte) i);
    }
  }

  @Test
  void writesReachTheFile() {
    MemorySegment from = arena.allocate(BLOCK).fill((byte) 7);
    try (IoUring ring = IoUring.open(4)) {
      assertThat(ring.write(fd, from, 3 * BLOCK, 1)).isTrue();
      assertThat(drain(ring)).containsExactly(Map.entry(1L, BLOCK));
    }
    MemorySegment back = arena.allocate(BLOCK);
    Posix.pread(fd, back, 3 * BLOCK);
    assertThat(back.mismatch(from)).isEqualTo(-1);
    assertThat(Posix.size(fd)).isEqualTo(4 * BLOCK);
  }

  @Test
  void errorsAndShortReadsAreResults() {
    fill(2);
    MemorySegment into = arena.allocate(2 * BLOCK);
    try (IoUring ring = IoUring.open(4)) {
      ring.read(1_000_000, into, 0, 1);
      ring.read(fd, into, BLOCK + 96, 2);
      ring.read(fd, into, 10 * BLOCK, 3);
      assertThat(drain(ring))
          .containsOnly(Map.entry(1L, -Errno.EBADF), Map.entry(2L, BLOCK - 96), Map.entry(3L, 0));
    }
  }

  @Test
  void neverMoreInFlightThanCompletionsHaveRoomFor() {
    fill(1);
    MemorySegment into = arena.allocate(BLOCK);
    try (IoUring ring = IoUring.open(2)) {
      int put = 0;
      while (ring.read(fd, into, 0, put)) {
        put++;
        ring.submit();
      }
      assertThat(put).as("completions have twice the entries").isEqualTo(4);
      assertThat(ring.inFlight()).isEqualTo(4);
      assertThat(drain(ring)).hasSize(4);
      assertThat(ring.read(fd, into, 0, 9)).isTrue();
    }
  }

  @Test
  void manyRoundsPassTheEndsOfTheRings() {
    fill(1);
    MemorySegment into = arena.allocate(8);
    try (IoUring ring = IoUring.open(4)) {
      for (int i = 0; i < 1000; i++) {
        for (int k = 0; k < 1 + i % 4; k++) {
          assertThat(ring.read(fd, into, 0, k)).isTrue();
        }
        assertThat(drain(ring)).hasSize(1 + i % 4);
      }
    }
  }

  @Test
  void awaitReturnsWhenAnotherThreadMakesDataArrive() throws Exception {
    try (EventFd event = EventFd.create();
        IoUring ring = IoUring.open(2)) {
      MemorySegment value = arena.allocate(JAVA_LONG);
      ring.read(event.fd(), value, 0, 5);
      ring.submit();
      assertThat(ring.take((userData, result) -> {})).isZero();
      CompletableFuture<Void> signal = CompletableFuture.runAsync(event::signal);
      assertThat(drain(ring)).containsExactly(Map.entry(5L, Long.BYTES));
      signal.get(30, TimeUnit.SECONDS);
      assertThat(value.get(JAVA_LONG, 0)).isEqualTo(1);
    }
  }

  @Test
  void closingWaitsForWhatIsInFlightAndGivesEverythingBack() throws Exception {
    fill(8);
    long before = descriptors();
    for (int i = 0; i < 50; i++) {
      IoUring ring = IoUring.open(8);
      ring.read(fd, arena.allocate(BLOCK), 0, 1);
      ring.submit();
      ring.close();
      ring.close();
      assertThatIllegalStateException().isThrownBy(ring::submit);
      assertThatIllegalStateException().isThrownBy(() -> ring.read(0, MemorySegment.NULL, 0, 0));
    }
    assertThat(descriptors()).isEqualTo(before);
  }

  private static long descriptors() throws Exception {
    try (var all = Files.list(Path.of("/proc/self/fd"))) {
      return all.count();
    }
  }

  @Test
  void badArgumentsAreRefused() {
    assertThatIllegalArgumentException().isThrownBy(() -> IoUring.open(0));
    try (IoUring ring = IoUring.open(1)) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> ring.read(fd, MemorySegment.ofArray(new byte[8]), 0, 0));
      assertThat(ring.inFlight()).isZero();
    }
  }

  /** A seccomp filter, on one thread only, refuses what containers refuse. */
  @Test
  void aRefusalSaysWhyAndWhatToDo() throws Exception {
    Map<Integer, IoUringUnavailableException.Reason> reasons =
        Map.of(
            Errno.EPERM, IoUringUnavailableException.Reason.FORBIDDEN,
            Errno.ENOSYS, IoUringUnavailableException.Reason.NOT_IN_KERNEL,
            Errno.ENOMEM, IoUringUnavailableException.Reason.NO_MEMORY);
    for (var expected : reasons.entrySet()) {
      IoUringUnavailableException e = openUnderFilter(expected.getKey());
      assertThat(e.reason()).isEqualTo(expected.getValue());
      assertThat(e).hasMessageContaining(Errno.name(expected.getKey()));
    }
  }

  private static IoUringUnavailableException openUnderFilter(int errno) throws Exception {
    List<IoUringUnavailableException> seen = new ArrayList<>();
    Thread thread =
        new Thread(
            () -> {
              refuseSetup(errno);
              seen.add(
                  catchThrowableOfType(
                      IoUringUnavailableException.class, () -> IoUring.open(4).close()));
            });
    thread.start();
    thread.join();
    assertThat(seen).hasSize(1);
    return seen.getFirst();
  }

  private static void refuseSetup(int errno) {
    CFunction prctl = CFunction.ofInt("prctl");
    // Load the number of the call; if it is io_uring_setup return the error, else allow.
    long[] program = {
      instruction(0x20, 0, 0, 0),
      instruction(0x15, 0, 1, 425),
      instruction(0x06, 0, 0, 0x00050000 | errno),
      instruction(0x06, 0, 0, 0x7FFF0000)
    };
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment filter = arena.allocate(16, 8);
      filter.set(JAVA_SHORT, 0, (short) program.length);
      filter.set(ADDRESS, 8, arena.allocateFrom(JAVA_LONG, program));
      Native.once("prctl", () -> "no new privileges", s -> prctl.call(s, 38, 1, 0, 0));
      Native.once("prctl", () -> "seccomp", s -> prctl.call(s, 22, 2, filter));
    }
  }

  private static long instruction(int code, int ifTrue, int ifFalse, int value) {
    return (code & 0xFFFFL) | (long) ifTrue << 16 | (long) ifFalse << 24 | (long) value << 32;
  }
}
