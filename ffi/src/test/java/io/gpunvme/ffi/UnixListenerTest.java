package io.gpunvme.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class UnixListenerTest {
  private static final Duration PATIENCE = Duration.ofSeconds(5);

  @TempDir Path folder;
  private Path path;

  @BeforeEach
  void choose() {
    path = folder.resolve("socket");
  }

  /** What a killed process leaves: a socket that nobody listens to. */
  static void leaveBehind(Path path) throws IOException {
    ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    channel.bind(UnixDomainSocketAddress.of(path));
    channel.close();
  }

  private static void refusesInUse(Path path) {
    PosixException e = catchThrowableOfType(PosixException.class, () -> UnixListener.at(path));
    assertThat(e.errno()).isEqualTo(Errno.EADDRINUSE);
  }

  private static int descriptorCount() throws IOException {
    try (var all = Files.list(Path.of("/proc/self/fd"))) {
      return (int) all.count();
    }
  }

  private static void talk(UnixListener listener) {
    try (UnixSocket client = UnixSocket.connect(listener.path(), PATIENCE);
        UnixSocket server = listener.accept().orElseThrow();
        Arena arena = Arena.ofConfined()) {
      client.send(arena.allocateFrom(ValueLayout.JAVA_BYTE, (byte) 5));
      MemorySegment into = arena.allocate(8);
      assertThat(server.receive(into, new ArrayList<>())).isOne();
      assertThat(into.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 5);
    }
  }

  @Test
  void acceptsOneAfterTheOther() throws IOException {
    int before = descriptorCount();
    try (UnixListener listener = UnixListener.at(path)) {
      assertThat(listener.path()).isEqualTo(path);
      talk(listener);
      talk(listener);
    }
    assertThat(path).doesNotExist();
    assertThat(descriptorCount()).isEqualTo(before);
  }

  @Test
  void onlyThisUserMayConnect() throws IOException {
    try (UnixListener listener = UnixListener.at(path)) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(listener.path())))
          .isEqualTo("rw-------");
    }
  }

  @Test
  void aSocketThatNobodyListensToIsReplaced() throws IOException {
    leaveBehind(path);
    assertThat(Files.exists(path, LinkOption.NOFOLLOW_LINKS)).isTrue();
    try (UnixListener listener = UnixListener.at(path)) {
      talk(listener);
    }
  }

  @Test
  void aSocketThatSomebodyListensToIsNot() throws IOException {
    try (UnixListener listener = UnixListener.at(path)) {
      int before = descriptorCount();
      refusesInUse(path);
      assertThat(descriptorCount()).isEqualTo(before);
      // The one that only asked whether anybody is there.
      listener.accept().orElseThrow().close();
      talk(listener);
    }
  }

  @Test
  void otherFilesStayAsTheyAre() throws IOException {
    Files.writeString(path, "mine");
    refusesInUse(path);
    assertThat(path).hasContent("mine");
    Path inner = Files.createDirectory(folder.resolve("folder"));
    refusesInUse(inner);
    assertThat(inner).isDirectory();
    Path link = Files.createSymbolicLink(folder.resolve("link"), folder.resolve("nowhere"));
    refusesInUse(link);
    assertThat(Files.isSymbolicLink(link)).isTrue();
    leaveBehind(folder.resolve("old"));
    Path toOld = Files.createSymbolicLink(folder.resolve("toOld"), folder.resolve("old"));
    refusesInUse(toOld);
    assertThat(Files.isSymbolicLink(toOld)).isTrue();
  }

  @Test
  void aFolderThatIsNotThere() {
    PosixException e =
        catchThrowableOfType(
            PosixException.class, () -> UnixListener.at(folder.resolve("none").resolve("s")));
    assertThat(e.errno()).isEqualTo(Errno.ENOENT);
  }

  @Test
  void ofManyThatStartAtOnceOneListens() throws Exception {
    for (int round = 0; round < 20; round++) {
      if (round % 2 == 0) {
        leaveBehind(path);
      }
      CountDownLatch all = new CountDownLatch(4);
      List<CompletableFuture<UnixListener>> starts = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        starts.add(CompletableFuture.supplyAsync(() -> startWith(all), Thread.ofPlatform()::start));
      }
      List<UnixListener> listening = new ArrayList<>();
      for (CompletableFuture<UnixListener> start : starts) {
        try {
          listening.add(start.get(20, TimeUnit.SECONDS));
        } catch (ExecutionException e) {
          assertThat(e.getCause())
              .isInstanceOfSatisfying(
                  PosixException.class, p -> assertThat(p.errno()).isEqualTo(Errno.EADDRINUSE));
        }
      }
      assertThat(listening).as("round %d", round).hasSize(1);
      assertThat(path).exists();
      listening.getFirst().close();
      assertThat(path).doesNotExist();
    }
  }

  private UnixListener startWith(CountDownLatch all) {
    all.countDown();
    try {
      all.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return UnixListener.at(path);
  }

  @Test
  void closeEndsWhoAccepts() throws Exception {
    UnixListener listener = UnixListener.at(path);
    CompletableFuture<Optional<UnixSocket>> accepting =
        CompletableFuture.supplyAsync(listener::accept, Thread.ofPlatform()::start);
    Thread.sleep(20);
    listener.close();
    listener.close();
    assertThat(accepting.get(20, TimeUnit.SECONDS)).isEmpty();
    assertThat(listener.accept()).isEmpty();
  }

  @Test
  void whoWaitsToBeAcceptedLearnsOfTheEnd() throws IOException {
    UnixListener listener = UnixListener.at(path);
    try (UnixSocket waiting = UnixSocket.connect(path, PATIENCE);
        Arena arena = Arena.ofConfined()) {
      listener.close();
      PosixException e =
          catchThrowableOfType(
              PosixException.class,
              () -> {
                int count = waiting.receive(arena.allocate(1), new ArrayList<>());
                assertThat(count).isZero();
              });
      if (e != null) {
        assertThat(e.errno()).isEqualTo(Errno.ECONNRESET);
      }
    }
  }
}
