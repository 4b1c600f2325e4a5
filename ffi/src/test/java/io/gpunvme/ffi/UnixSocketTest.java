package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class UnixSocketTest {
  @TempDir Path folder;

  private final Arena arena = Arena.ofShared();
  private UnixSocket here;
  private UnixSocket there;

  @BeforeEach
  void connect() {
    List<UnixSocket> pair = UnixSocket.pair();
    here = pair.get(0);
    there = pair.get(1);
  }

  @AfterEach
  void close() {
    here.close();
    there.close();
    arena.close();
  }

  private MemorySegment bytes(int... values) {
    byte[] all = new byte[values.length];
    for (int i = 0; i < values.length; i++) {
      all[i] = (byte) values[i];
    }
    return arena.allocateFrom(ValueLayout.JAVA_BYTE, all);
  }

  private byte[] receive(UnixSocket socket, List<Integer> descriptors) {
    MemorySegment into = arena.allocate(64);
    int count = socket.receive(into, descriptors);
    return into.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE);
  }

  private static int descriptorCount() throws IOException {
    try (var all = Files.list(Path.of("/proc/self/fd"))) {
      return (int) all.count();
    }
  }

  private static void assertErrno(int errno, Runnable call) {
    PosixException e = catchThrowableOfType(PosixException.class, call::run);
    assertThat(e.errno()).as(e.getMessage()).isEqualTo(errno);
  }

  @Test
  void aReceiverWaitsNoLongerThanItIsTold() {
    here.receiveTimeout(Duration.ofMillis(20));
    assertErrno(Errno.EAGAIN, () -> receive(here, new ArrayList<>()));
    there.send(bytes(5));
    assertThat(receive(here, new ArrayList<>())).containsExactly(5);
  }

  @Test
  void carriesBytesBothWays() {
    List<Integer> none = new ArrayList<>();
    here.send(bytes(1, 2, 3));
    assertThat(receive(there, none)).containsExactly(1, 2, 3);
    there.send(bytes(4));
    assertThat(receive(here, none)).containsExactly(4);
    assertThat(none).isEmpty();
  }

  @Test
  void whatDoesNotFitComesNext() {
    here.send(bytes(1, 2, 3, 4, 5));
    MemorySegment two = arena.allocate(2);
    assertThat(there.receive(two, new ArrayList<>())).isEqualTo(2);
    assertThat(receive(there, new ArrayList<>())).containsExactly(3, 4, 5);
  }

  @Test
  void carriesDescriptorsOfTheSameMemory() throws IOException {
    try (SharedMemory memory = SharedMemory.allocate("test", 4096)) {
      int before = descriptorCount();
      here.send(bytes(7), memory.fd(), memory.fd());
      List<Integer> arrived = new ArrayList<>();
      assertThat(receive(there, arrived)).containsExactly(7);
      assertThat(arrived).hasSize(2).doesNotContain(memory.fd()).doesNotHaveDuplicates();
      memory.segment().set(ValueLayout.JAVA_INT, 0, 42);
      try (Mapping view = Mapping.shared(arrived.get(1), 0, 4096, Posix.PROT_READ)) {
        assertThat(view.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(42);
      }
      for (int fd : arrived) {
        String info = Files.readString(Path.of("/proc/self/fdinfo/" + fd));
        int flags = Integer.parseInt(info.split("flags:\\s+")[1].split("\\s")[0], 8);
        assertThat(flags & Posix.O_CLOEXEC).as("not for programs that are started").isNotZero();
        Posix.close(fd);
      }
      assertThat(descriptorCount()).isEqualTo(before);
    }
  }

  @Test
  void descriptorsComeWithTheFirstByteOnly() {
    try (SharedMemory memory = SharedMemory.allocate("test", 4096)) {
      here.send(bytes(1, 2), memory.fd());
      here.send(bytes(3));
      MemorySegment one = arena.allocate(1);
      List<Integer> first = new ArrayList<>();
      assertThat(there.receive(one, first)).isEqualTo(1);
      assertThat(first).hasSize(1);
      List<Integer> later = new ArrayList<>();
      assertThat(there.receive(one, later)).isEqualTo(1);
      assertThat(later).isEmpty();
      first.forEach(Posix::close);
    }
  }

  @Test
  void asManyDescriptorsAsTheKernelTakes() throws IOException {
    try (SharedMemory memory = SharedMemory.allocate("test", 4096)) {
      int before = descriptorCount();
      int[] most = new int[UnixSocket.MAX_DESCRIPTORS];
      Arrays.fill(most, memory.fd());
      here.send(bytes(1), most);
      List<Integer> arrived = new ArrayList<>();
      assertThat(receive(there, arrived)).containsExactly(1);
      assertThat(arrived).hasSize(most.length);
      arrived.forEach(Posix::close);
      int[] more = new int[UnixSocket.MAX_DESCRIPTORS + 1];
      Arrays.fill(more, memory.fd());
      assertErrno(Errno.EINVAL, () -> here.send(bytes(1), more));
      assertErrno(Errno.EBADF, () -> here.send(bytes(1), 1_000_000));
      assertThat(descriptorCount()).isEqualTo(before);
    }
  }

  @Test
  void descriptorsThatNobodyReceivesAreClosed() throws IOException {
    int before = descriptorCount();
    try (SharedMemory memory = SharedMemory.allocate("test", 4096)) {
      here.send(bytes(1), memory.fd());
      there.close();
    }
    assertThat(descriptorCount()).isEqualTo(before - 1);
  }

  @Test
  void shutdownEndsWhoWaits() throws Exception {
    CompletableFuture<byte[]> own =
        CompletableFuture.supplyAsync(() -> receive(here, new ArrayList<>()));
    CompletableFuture<byte[]> peers =
        CompletableFuture.supplyAsync(() -> receive(there, new ArrayList<>()));
    Thread.sleep(20);
    here.shutdown();
    here.shutdown();
    assertThat(own.get(20, TimeUnit.SECONDS)).isEmpty();
    assertThat(peers.get(20, TimeUnit.SECONDS)).isEmpty();
  }

  @Test
  void whatWasSentBeforeTheEndStillArrives() {
    here.send(bytes(1, 2));
    here.close();
    assertThat(receive(there, new ArrayList<>())).containsExactly(1, 2);
    assertThat(receive(there, new ArrayList<>())).isEmpty();
    assertErrno(Errno.EPIPE, () -> there.send(bytes(1)));
  }

  @Test
  void aPeerThatTakesNothingIsNotWaitedForLongerThanSaid() {
    here.sendTimeout(Duration.ofMillis(100));
    MemorySegment much = arena.allocate(8 << 20);
    long start = System.nanoTime();
    assertErrno(Errno.EAGAIN, () -> here.send(much));
    assertThat((System.nanoTime() - start) / 1_000_000).isBetween(90L, 5_000L);
  }

  @Test
  void muchArrivesInOrder() throws Exception {
    int size = 3 << 20;
    MemorySegment much = arena.allocate(size);
    for (int i = 0; i < size; i++) {
      much.set(ValueLayout.JAVA_BYTE, i, (byte) (i * 7 + (i >> 8)));
    }
    CompletableFuture<Void> sender = CompletableFuture.runAsync(() -> here.send(much));
    MemorySegment into = arena.allocate(size);
    for (long done = 0; done < size; ) {
      done += there.receive(into.asSlice(done), new ArrayList<>());
    }
    sender.get(20, TimeUnit.SECONDS);
    assertThat(into.mismatch(much)).isEqualTo(-1);
  }

  @Test
  void nobodyListens() throws IOException {
    Duration patience = Duration.ofSeconds(1);
    assertErrno(Errno.ENOENT, () -> UnixSocket.connect(folder.resolve("none"), patience));
    Path file = Files.createFile(folder.resolve("file"));
    assertErrno(Errno.ECONNREFUSED, () -> UnixSocket.connect(file, patience));
    Path path = folder.resolve("gone");
    UnixListenerTest.leaveBehind(path);
    assertErrno(Errno.ECONNREFUSED, () -> UnixSocket.connect(path, patience));
  }

  @Test
  void pathsHaveALimit() {
    Path longest = Path.of("/" + "x".repeat(106));
    assertErrno(Errno.ENOENT, () -> UnixSocket.connect(longest, Duration.ofSeconds(1)));
    Path longer = Path.of("/" + "x".repeat(107));
    assertThatIllegalArgumentException()
        .isThrownBy(() -> UnixSocket.connect(longer, Duration.ofSeconds(1)))
        .withMessageContaining("107");
  }

  @Test
  void useAfterCloseThrows() {
    here.close();
    here.close();
    here.shutdown();
    assertThatIllegalStateException().isThrownBy(() -> here.send(bytes(1)));
    assertThatIllegalStateException().isThrownBy(() -> receive(here, new ArrayList<>()));
    assertThatIllegalStateException().isThrownBy(() -> here.sendTimeout(Duration.ofSeconds(1)));
  }
}
