package io.gpunvme.gpu.watch;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixSocket;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What the processes of this user tell of their controllers.
 *
 * @param answers of those that told something
 * @param problems in words: who did not answer, or must not be asked, and why
 */
public record Processes(List<Answer> answers, List<String> problems) {
  /** A process has this long until it goes on with its answer. */
  private static final Duration PATIENCE = Duration.ofSeconds(1);

  /** And this long for all of it. */
  private static final Duration MOST = Duration.ofSeconds(5);

  /** The time from making a socket to listening there is much shorter. */
  private static final Duration NEW = Duration.ofSeconds(5);

  /** No process has as many queue pairs as would need more. */
  private static final int LONGEST_ANSWER = 8 << 20;

  private static final int PART = 64 << 10;
  private static final Pattern PID = Pattern.compile("[1-9]\\d{0,17}");

  /**
   * The answer of one process.
   *
   * @param pid the process's number
   * @param nanos when it told, by {@link System#nanoTime}
   * @param metrics what it tells
   */
  public record Answer(long pid, long nanos, MetricText metrics) {}

  /** Asks all processes. Sockets that nobody listens to any more, as after a kill, are removed. */
  public static Processes ask() {
    return ask(RunFolder.all());
  }

  static Processes ask(List<RunFolder> folders) {
    Processes all = new Processes(new ArrayList<>(), new ArrayList<>());
    for (RunFolder folder : folders) {
      String refusal = folder.refusal();
      if (refusal == null) {
        all.askThoseIn(folder);
      } else if (folder.exists()) {
        all.problems.add(refusal + "; programs that use it are not seen");
      }
    }
    return all;
  }

  private void askThoseIn(RunFolder folder) {
    List<Long> pids;
    try (Stream<Path> entries = Files.list(folder.path())) {
      pids =
          entries
              .map(entry -> entry.getFileName().toString())
              .filter(name -> PID.matcher(name).matches())
              .map(Long::valueOf)
              .sorted()
              .toList();
    } catch (NoSuchFileException e) {
      // The last process that used it has ended since.
      return;
    } catch (IOException | UncheckedIOException e) {
      problems.add(folder.path() + " cannot be read: " + e.getMessage());
      return;
    }
    pids.forEach(pid -> ask(pid, folder));
  }

  private void ask(long pid, RunFolder folder) {
    Path socket = folder.socket(pid);
    try {
      MetricText metrics = MetricText.parse(read(socket));
      answers.add(new Answer(pid, System.nanoTime(), metrics));
    } catch (PosixException e) {
      boolean late = e.errno() == Errno.EAGAIN;
      boolean refused = e.errno() == Errno.ECONNREFUSED;
      boolean gone = !Files.exists(Path.of("/proc/" + pid));
      if ((refused || late) && gone || refused && isOld(socket)) {
        // Late and no process: a child by fork has the listening socket of one that is gone.
        remove(socket);
        folder.removeIfEmpty();
      } else if (!refused && e.errno() != Errno.ENOENT && e.errno() != Errno.ECONNRESET) {
        problems.add(
            "process %d: %s"
                .formatted(
                    pid,
                    late ? "no answer within " + PATIENCE.toSeconds() + " s" : e.getMessage()));
      }
    } catch (UnreadableMetricsException e) {
      problems.add("process %d: %s".formatted(pid, e.getMessage()));
    }
  }

  /** Whether its process had the time to listen there: it refuses until then. */
  private static boolean isOld(Path socket) {
    try {
      Instant made = Files.getLastModifiedTime(socket, LinkOption.NOFOLLOW_LINKS).toInstant();
      return made.plus(NEW).isBefore(Instant.now());
    } catch (IOException e) {
      return false;
    }
  }

  private static void remove(Path socket) {
    try {
      Files.deleteIfExists(socket);
    } catch (IOException e) {
      // It stays, and is met again.
    }
  }

  private static String read(Path path) {
    long end = System.nanoTime() + MOST.toNanos();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (UnixSocket socket = UnixSocket.connect(path, PATIENCE);
        Arena arena = Arena.ofConfined()) {
      MemorySegment part = arena.allocate(PART);
      int count;
      do {
        // A timeout of zero would be none.
        long left = Math.clamp(end - System.nanoTime(), 1_000_000, PATIENCE.toNanos());
        socket.receiveTimeout(Duration.ofNanos(left));
        List<Integer> descriptors = new ArrayList<>();
        count = socket.receive(part, descriptors);
        descriptors.forEach(Posix::close);
        bytes.writeBytes(part.asSlice(0, count).toArray(ValueLayout.JAVA_BYTE));
        if (bytes.size() > LONGEST_ANSWER) {
          throw new UnreadableMetricsException(
              "an answer of more than %d bytes".formatted(LONGEST_ANSWER));
        }
        if (count > 0 && System.nanoTime() > end) {
          throw new PosixException("recvmsg", path.toString(), Errno.EAGAIN);
        }
      } while (count > 0);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }
}
