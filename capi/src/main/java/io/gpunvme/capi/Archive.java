package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The classes of the library as a virtual machine has them when it has loaded them, in a file that
 * it maps: to load them takes a third of the time until a program's first read. The C library names
 * the file. If it is not there, it has another process make it for the next start, in the
 * background, by {@link #main}.
 */
public final class Archive {
  /**
   * The file to make before the start ends. Set by the C library if it is not there, may be made,
   * and the start is to wait.
   */
  private static final String WANTED = "gpunvme.archive";

  private static final String MODULE = "io.gpunvme.capi";
  private static final String TRAIN = "--train";

  /** What a thread of the embedded controller loads if it happens to have nothing to do. */
  private static final String AT_TIMES = "@lambda-proxy io/gpunvme/sim/Worker ";

  private static final long LONGEST_SECONDS = 60;

  /** As in jvm.c, whose virtual machine takes an archive only from one with the same of these. */
  private static final List<String> OPTIONS =
      List.of(
          "-XX:+UseSerialGC",
          "-Xlog:disable",
          "-XX:-UsePerfData",
          "--add-modules=" + MODULE,
          "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda," + MODULE,
          "--illegal-native-access=deny");

  private Archive() {}

  /** Makes the archive, in another process, if the start is to wait for that. */
  static void makeIfWanted() {
    String archive = System.getProperty(WANTED);
    if (archive == null) {
      return;
    }
    try {
      run(
          System.getProperty("jdk.module.path"),
          List.of("-m", MODULE + "/" + Archive.class.getName(), archive));
    } catch (IOException | InterruptedException e) {
      // The next start does without, as this one did.
    }
  }

  /**
   * Makes an archive.
   *
   * @param args its name, in the folder of the jars. Or, for a runtime that has their modules: its
   *     name anywhere, and a file with names of further classes; equal runtimes make equal archives
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    if (args[0].equals(TRAIN)) {
      train();
      return;
    }
    Path archive = Path.of(args[0]);
    Path lock = archive.resolveSibling("gpunvme.jsa.lock");
    try (FileChannel channel =
            FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        FileLock mine = channel.tryLock()) {
      if (mine != null && !Files.exists(archive)) {
        make(
            archive,
            args.length > 1 ? Files.readAllLines(Path.of(args[1])) : List.of(),
            archive.resolveSibling("gpunvme.jsa.classes"),
            archive.resolveSibling("gpunvme.jsa.next"));
      }
    }
  }

  private static void make(Path archive, List<String> further, Path classes, Path next)
      throws IOException, InterruptedException {
    String jars = System.getProperty("jdk.module.path");
    String main = MODULE + "/" + Archive.class.getName();
    try {
      run(jars, List.of("-XX:DumpLoadedClassList=" + classes, "-m", main, TRAIN));
      sort(classes, further);
      run(
          jars,
          List.of(
              "-Xshare:dump",
              "-XX:SharedClassListFile=" + classes,
              "-XX:SharedArchiveFile=" + next));
      if (jars != null) {
        deleteOld(Path.of(jars));
      }
      Files.move(next, archive, StandardCopyOption.ATOMIC_MOVE);
    } finally {
      Files.deleteIfExists(classes);
      Files.deleteIfExists(next);
    }
  }

  /** Classes by their names, without what of them happened to be resolved by then. */
  private static void sort(Path classes, List<String> further) throws IOException {
    Files.write(
        classes,
        Stream.concat(Files.readAllLines(classes).stream(), further.stream())
            .filter(line -> !line.startsWith("@cp ") && !line.startsWith("#"))
            .filter(line -> !line.startsWith(AT_TIMES))
            .map(line -> line.replaceFirst(" id: .*", ""))
            .sorted()
            .distinct()
            .toList());
  }

  /** Those of before a change. */
  private static void deleteOld(Path jars) throws IOException {
    try (DirectoryStream<Path> old = Files.newDirectoryStream(jars, "gpunvme-*.jsa")) {
      for (Path one : old) {
        Files.delete(one);
      }
    }
  }

  private static void run(@Nullable String jars, List<String> rest)
      throws IOException, InterruptedException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    if (jars != null) {
      command.add("--module-path=" + jars);
    }
    command.addAll(OPTIONS);
    command.addAll(rest);
    Process process =
        new ProcessBuilder(command)
            .redirectInput(Redirect.from(Path.of("/dev/null").toFile()))
            .redirectOutput(Redirect.DISCARD)
            .redirectError(Redirect.DISCARD)
            .start();
    if (!process.waitFor(LONGEST_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly();
    }
    if (process.waitFor() != 0) {
      throw new IOException(command + " ended with " + process.exitValue());
    }
  }

  /** Does what most programs begin with. */
  private static void train() throws IOException {
    Path file = Files.createTempFile("gpunvme", ".bin");
    try (Arena arena = Arena.ofConfined()) {
      Files.write(file, new byte[4096]);
      MemorySegment table = arena.allocate(ValueLayout.ADDRESS, 1L + Exports.TABLE.size());
      Exports.fill(table.address(), Exports.VERSION);
      Calls calls = new Calls();
      for (String uri : List.of(file.toString(), "sim:size=16MiB")) {
        read(calls, uri, arena);
      }
    } finally {
      Files.delete(file);
    }
  }

  private static void read(Calls calls, String uri, Arena arena) {
    MemorySegment failure = arena.allocate(Calls.FAILURE, Long.BYTES);
    MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
    MemorySegment into = arena.allocate(512, 4096);
    MemorySegment none = MemorySegment.NULL;
    require(
        calls.open(arena.allocateFrom(uri), arena.allocateFrom("cpu"), 0, out, failure), failure);
    long storage = out.get(ValueLayout.JAVA_LONG, 0);
    require(calls.info(storage, arena.allocate(Structs.INFO), failure), failure);
    MemorySegment range =
        arena.allocateFrom(ValueLayout.JAVA_LONG, 0, into.address(), into.byteSize());
    require(calls.transfer(storage, 0, range, 1, none, none, failure), failure);
    require(calls.close(storage, failure), failure);
  }

  private static void require(int code, MemorySegment failure) {
    if (code < 0) {
      throw new InvalidRequestException(failure.getString(Long.BYTES));
    }
  }
}
