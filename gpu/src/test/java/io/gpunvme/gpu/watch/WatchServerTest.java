package io.gpunvme.gpu.watch;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.AbstractList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A process that tells, and one that asks. */
@Timeout(60)
class WatchServerTest {
  private static final String TEXT = "gpunvme_commands_total{device=\"sim:\"} 5\n# EOF\n";

  @TempDir Path tmp;
  private RunFolder folder;
  private Path socket;

  @BeforeEach
  void choose() {
    folder = RunFolder.all(Map.of(), tmp).getFirst();
    socket = folder.socket(ProcessHandle.current().pid());
  }

  private WatchServer start(Duration delay) {
    return WatchServer.start(() -> TEXT, List.of(folder), delay);
  }

  private Processes ask() {
    return Processes.ask(List.of(folder));
  }

  private static void await(BooleanSupplier condition) throws InterruptedException {
    while (!condition.getAsBoolean()) {
      Thread.sleep(2);
    }
  }

  private boolean comesAndGoes() {
    try {
      UnixSocket.connect(socket, Duration.ofSeconds(1)).close();
      return true;
    } catch (PosixException e) {
      return false;
    }
  }

  private static boolean isRunning() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(t -> t.getName().equals("gpunvme-watch"));
  }

  @Test
  void whoeverAsksGetsTheText() throws InterruptedException {
    try (WatchServer _ = start(Duration.ZERO)) {
      await(() -> !ask().answers().isEmpty());
      Processes all = ask();
      assertThat(all.problems()).isEmpty();
      assertThat(all.answers()).hasSize(1);
      assertThat(all.answers().getFirst().pid()).isEqualTo(ProcessHandle.current().pid());
      assertThat(all.answers().getFirst().metrics().samples(Metric.COMMANDS))
          .singleElement()
          .extracting(Sample::number)
          .isEqualTo(5.0);
    }
    await(() -> !isRunning());
    assertThat(folder.exists()).isFalse();
    assertThat(ask()).isEqualTo(new Processes(List.of(), List.of()));
  }

  @Test
  void theFolderIsThereWhileAnybodyUsesIt() throws Exception {
    UnixListener other = folder.listen(4_000_001);
    try (WatchServer _ = start(Duration.ZERO)) {
      await(() -> Files.exists(socket));
    }
    await(() -> !isRunning());
    assertThat(folder.socket(4_000_001)).exists();
    other.close();
    folder.removeIfEmpty();
    assertThat(folder.exists()).isFalse();
  }

  @Test
  void somebodyMayRemoveTheFolderWhileAnotherComes() throws Exception {
    AtomicBoolean over = new AtomicBoolean();
    Thread remover =
        Thread.ofPlatform()
            .start(
                () -> {
                  while (!over.get()) {
                    folder.removeIfEmpty();
                    LockSupport.parkNanos(5_000_000);
                  }
                });
    try {
      for (int i = 0; i < 500; i++) {
        folder.listen(4_000_001).close();
        assertThat(ask().problems()).isEmpty();
      }
    } finally {
      over.set(true);
      remover.join();
    }
  }

  @Test
  void oneThatIsClosedSoonHasOpenedNothing() throws InterruptedException {
    WatchServer server = start(Duration.ofHours(1));
    assertThat(isRunning()).isTrue();
    server.close();
    server.close();
    await(() -> !isRunning());
    assertThat(folder.exists()).isFalse();
  }

  @Test
  void oneThatIsClosedWhileItOpensIsGoneWithItsFolderAtTheEndOfTheClosing() throws Exception {
    CountDownLatch opening = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(1);
    List<RunFolder> slow =
        new AbstractList<>() {
          @Override
          public RunFolder get(int index) {
            opening.countDown();
            try {
              go.await();
            } catch (InterruptedException e) {
              throw new AssertionError(e);
            }
            return folder;
          }

          @Override
          public int size() {
            return 1;
          }
        };
    WatchServer server = WatchServer.start(() -> TEXT, slow, Duration.ZERO);
    opening.await();
    Thread closer = Thread.ofPlatform().start(server::close);
    // A process may end after the closing, and nothing removes its folder then.
    assertThat(closer.join(Duration.ofMillis(200))).as("closed while it opens").isFalse();
    go.countDown();
    closer.join();
    assertThat(folder.exists()).isFalse();
  }

  @Test
  void aFolderThatCannotBeUsedIsLeftForTheNext() throws Exception {
    Files.createFile(tmp.resolve("file"));
    RunFolder bad = new RunFolder(tmp.resolve("file"));
    try (WatchServer _ = WatchServer.start(() -> TEXT, List.of(bad, folder), Duration.ZERO)) {
      await(() -> Files.exists(socket));
    }
    try (WatchServer _ = WatchServer.start(() -> TEXT, List.of(bad), Duration.ZERO)) {
      await(() -> !isRunning());
    }
  }

  @Test
  void oneThatGoesAwayInTheMiddleHarmsNobody() throws InterruptedException {
    try (WatchServer _ = start(Duration.ZERO)) {
      // The file is there a moment before anybody listens.
      await(this::comesAndGoes);
      for (int i = 0; i < 5; i++) {
        assertThat(comesAndGoes()).isTrue();
      }
      assertThat(ask().answers()).hasSize(1);
    }
  }

  // ---- what the one that asks may meet

  private UnixListener listener() throws IOException {
    folder.make();
    return UnixListener.at(socket);
  }

  @Test
  void aSocketThatNobodyListensToIsRemoved() throws Exception {
    folder.make();
    // Bound and closed by a process that did not remove it.
    Path stale = folder.socket(4_000_001);
    try (var channel =
        java.nio.channels.ServerSocketChannel.open(java.net.StandardProtocolFamily.UNIX)) {
      channel.bind(java.net.UnixDomainSocketAddress.of(stale));
    }
    assertThat(stale).exists();
    assertThat(ask()).isEqualTo(new Processes(List.of(), List.of()));
    assertThat(folder.exists()).isFalse();
  }

  @Test
  void oneThatDoesNotAnswerIsNotWaitedForLong() throws IOException {
    try (UnixListener _ = listener()) {
      assertThat(ask().problems())
          .singleElement()
          .asString()
          .contains("process " + ProcessHandle.current().pid(), "no answer within 1 s");
      assertThat(socket).as("it may answer the next time").exists();
    }
  }

  @Test
  void aChildThatInheritedTheSocketOfOneThatIsGoneIsNotAskedAgain() throws IOException {
    folder.make();
    Path dead = folder.socket(4_000_002);
    try (UnixListener _ = UnixListener.at(dead)) {
      assertThat(ask().problems()).isEmpty();
      assertThat(dead).doesNotExist();
    }
  }

  @Test
  void otherFilesAreLeftAlone() throws IOException {
    folder.make();
    Path file = Files.createFile(folder.path().resolve("notes"));
    assertThat(ask()).isEqualTo(new Processes(List.of(), List.of()));
    assertThat(file).exists();
  }

  @Test
  void anAnswerThatMakesNoSenseIsSaidToBeSo() throws IOException {
    assertThat(answered("gpunvme_commands_total 5\n")).contains("was cut off");
    assertThat(answered("hello\n# EOF\n")).contains("'hello' is no metric");
    assertThat(answered("# x\n".repeat(3 << 20))).contains("more than 8388608 bytes");
  }

  private String answered(String text) throws IOException {
    try (UnixListener listener = listener();
        Arena arena = Arena.ofShared()) {
      var bytes = arena.allocateFrom(text, StandardCharsets.UTF_8);
      CompletableFuture<Void> server =
          CompletableFuture.runAsync(
              () -> {
                try (UnixSocket client = listener.accept().orElseThrow()) {
                  client.send(bytes.asSlice(0, bytes.byteSize() - 1));
                } catch (io.gpunvme.ffi.PosixException e) {
                  // It has read enough.
                }
              });
      String problem = ask().problems().getFirst();
      server.join();
      return problem;
    }
  }
}
