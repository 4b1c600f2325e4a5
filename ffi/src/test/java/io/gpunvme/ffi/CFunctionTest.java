package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CFunctionTest {
  @TempDir Path folder;

  /** In the register of a result there may be anything above an {@code int}. */
  @Test
  void negativeResultsOf32BitsAreNegative() {
    long result = Native.errnoNegated(s -> LibC.CLOSE.call(s, -1));
    assertThat(result).isEqualTo(-Errno.EBADF);
    assertThat(Native.errnoNegated(s -> LibC.FCNTL.call(s, -1, 1, 0))).isEqualTo(-Errno.EBADF);
  }

  @Test
  void numbersAndResultsOf64BitsAreWhole() {
    long far = (5L << 32) + 7;
    int fd = Posix.open(folder.resolve("far").toString(), Posix.O_RDWR | Posix.O_CREAT, 0600);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment byteOfIt = arena.allocate(1).fill((byte) 9);
      assertThat(Native.errnoNegated(s -> LibC.PWRITE.call(s, fd, byteOfIt, 1, far))).isEqualTo(1);
      assertThat(Native.errnoNegated(s -> LibC.LSEEK.call(s, fd, 0, 2))).isEqualTo(far + 1);
      byteOfIt.fill((byte) 0);
      assertThat(Native.errnoNegated(s -> LibC.PREAD.call(s, fd, byteOfIt, 1, far))).isEqualTo(1);
      assertThat(byteOfIt.get(JAVA_BYTE, 0)).isEqualTo((byte) 9);
    } finally {
      Posix.close(fd);
    }
  }

  /** The third argument of open(2) is variadic. */
  @Test
  void variadicArgumentsArrive() throws Exception {
    Path file = folder.resolve("mode");
    Posix.close(Posix.open(file.toString(), Posix.O_WRONLY | Posix.O_CREAT, 0400));
    assertThat(Files.getPosixFilePermissions(file)).containsExactly(PosixFilePermission.OWNER_READ);
  }

  @Test
  void memoryOnTheHeapIsRefused() {
    MemorySegment heap = MemorySegment.ofArray(new byte[8]);
    assertThatThrownBy(() -> Native.errnoNegated(s -> LibC.PREAD.call(s, 0, heap, 8, 0)))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void memoryOfAnotherThreadAndMemoryThatIsGoneAreRefused() throws Exception {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(8);
      CompletableFuture<Throwable> refused =
          CompletableFuture.runAsync(
                  () -> Native.errnoNegated(s -> LibC.PREAD.call(s, 0, memory, 8, 0)))
              .handle((_, e) -> e);
      assertThat(refused.get(10, TimeUnit.SECONDS)).hasCauseInstanceOf(WrongThreadException.class);
    }
    MemorySegment gone;
    try (Arena arena = Arena.ofConfined()) {
      gone = arena.allocate(8);
    }
    assertThatThrownBy(() -> Native.errnoNegated(s -> LibC.MLOCK.call(s, gone, 8)))
        .isInstanceOf(IllegalStateException.class);
  }

  /** The kernel writes into it whenever the call ends. */
  @Test
  void memoryIsNotFreedDuringTheCall() throws Exception {
    CFunction read = CFunction.ofLong("read");
    Arena arena = Arena.ofShared();
    MemorySegment value = arena.allocate(JAVA_LONG);
    try (EventFd event = EventFd.create()) {
      int fd = event.fd();
      CompletableFuture<Path> task = new CompletableFuture<>();
      CompletableFuture<Long> reader =
          CompletableFuture.supplyAsync(
              () -> {
                task.complete(link("/proc/thread-self"));
                return Native.errnoNegated(s -> read.call(s, fd, value, Long.BYTES));
              });
      Path call = Path.of("/proc").resolve(task.get(10, TimeUnit.SECONDS)).resolve("syscall");
      String arguments = " 0x%x 0x%x ".formatted(fd, value.address());
      long start = System.nanoTime();
      while (!Files.readString(call).contains(arguments)) {
        assertThat(System.nanoTime() - start).isLessThan(10_000_000_000L);
      }
      assertThatThrownBy(arena::close).isInstanceOf(IllegalStateException.class);
      event.signal();
      assertThat(reader.get(10, TimeUnit.SECONDS)).isEqualTo(Long.BYTES);
      assertThat(value.get(JAVA_LONG, 0)).isEqualTo(1);
      arena.close();
    }
  }

  private static Path link(String path) {
    try {
      return Files.readSymbolicLink(Path.of(path));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
