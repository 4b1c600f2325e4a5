package io.gpunvme.bench;

import io.gpunvme.bench.BindingsChild.MissingException;
import io.gpunvme.tools.bench.BenchException;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * How the program of each side is started: all with the same jars, the same Java, and the options
 * that the C library gives it.
 */
record BindingsCommands(BindingsBenchOptions options) {
  private static final String MODULE = "io.gpunvme.capi";

  /** As {@code make_options} in capi/src/main/c/jvm.c has them. */
  private static final List<String> JAVA_OPTIONS =
      List.of(
          "-Xrs",
          "-Xlog:disable",
          "-XX:+DisplayVMOutputToStderr",
          "-XX:-UsePerfData",
          "--add-modules=" + MODULE,
          "--enable-native-access=io.gpunvme.ffi,io.gpunvme.cuda," + MODULE,
          "--illegal-native-access=deny",
          "-XX:+UseSerialGC");

  private static final int GPU_WORKERS = 4;

  private static final Duration PATIENCE = Duration.ofMinutes(1);

  /** The slowest that making a pattern, or reading and comparing, may be. */
  private static final long BYTES_PER_SECOND = 20_000_000;

  /** The SSD of each side: as fast as an embedded one is, so that little is hidden behind it. */
  static String uri(BindingsBenchOptions options) {
    return "sim:size=%d,pinned=true,workers=%d"
        .formatted(options.size(), options.accelerator().equals("gpu") ? GPU_WORKERS : 1);
  }

  /**
   * Starts a side and waits until it is ready.
   *
   * @throws MissingException if this machine cannot measure it
   */
  BindingsChild start(BindingsSide side) throws MissingException {
    List<String> command = new ArrayList<>(program(side));
    command.add(options.accelerator());
    command.add(uri(options));
    command.add(Long.toString(options.size()));
    return BindingsChild.start(
        side.toString(),
        command,
        libraryEnvironment(),
        PATIENCE.plusSeconds(options.size() / BYTES_PER_SECOND));
  }

  /**
   * Starts a side of {@link SmallReadsBench}: C or Python.
   *
   * @param ssd address of an embedded SSD that the side opens
   * @throws MissingException if this machine cannot measure it
   */
  BindingsChild startSmall(BindingsSide side, Path file, String ssd) throws MissingException {
    required(library());
    List<String> command = new ArrayList<>();
    if (side == BindingsSide.C) {
      command.add(required(options.capi().resolve("small")));
    } else {
      command.addAll(List.of(options.python(), "-c", script("small.py")));
    }
    command.addAll(List.of(file.toString(), ssd));
    return BindingsChild.start(side.toString(), command, libraryEnvironment(), PATIENCE);
  }

  /**
   * A Python program that reads a little of a file, and ends; in {@link #libraryEnvironment}.
   *
   * @throws MissingException if this machine cannot measure it
   */
  List<String> firstRead(Path file) throws MissingException {
    required(library());
    return List.of(options.python(), "-c", script("first_read.py"), file.toString());
  }

  private List<String> program(BindingsSide side) throws MissingException {
    return switch (side) {
      case JAVA -> java();
      case C -> List.of(required(options.capi().resolve("bindings")));
      case PYTHON -> {
        required(library());
        yield List.of(options.python(), "-c", script("bindings.py"));
      }
    };
  }

  private List<String> java() throws MissingException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("--module-path=" + required(options.home()));
    command.addAll(JAVA_OPTIONS);
    command.add("-cp");
    command.add(ownClasses());
    command.add(BindingsJava.class.getName());
    return command;
  }

  /** What a program that uses the library has not: the benchmark's own jar, and that of tools. */
  private static String ownClasses() {
    return jar(BindingsJava.class) + File.pathSeparator + jar(BenchException.class);
  }

  private static String jar(Class<?> type) {
    try {
      return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI()).toString();
    } catch (URISyntaxException e) {
      throw new IllegalStateException(e);
    }
  }

  private Path library() {
    return options.capi().resolve("libgpunvme.so");
  }

  private static String required(Path file) throws MissingException {
    if (!Files.exists(file)) {
      throw new MissingException("there is no " + file);
    }
    return file.toAbsolutePath().toString();
  }

  private static String script(String name) {
    try (InputStream in = BindingsCommands.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalStateException(name + " is not beside the classes");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** How programs find the library. */
  Map<String, String> libraryEnvironment() {
    Map<String, String> all = new LinkedHashMap<>();
    all.put("GPUNVME_LIBRARY", library().toAbsolutePath().toString());
    all.put("GPUNVME_HOME", options.home().toAbsolutePath().toString());
    all.put("GPUNVME_JAVA_HOME", System.getProperty("java.home"));
    all.put("GPUNVME_JAVA_OPTS", "");
    String path = System.getenv("PYTHONPATH");
    all.put(
        "PYTHONPATH",
        options.sources().toAbsolutePath()
            + (path == null || path.isEmpty() ? "" : File.pathSeparator + path));
    all.put("PYTHONDONTWRITEBYTECODE", "1");
    // Threads of PyTorch that have compared do not spin while others are measured.
    all.put("OMP_WAIT_POLICY", "passive");
    return all;
  }
}
