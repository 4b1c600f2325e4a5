package io.gpunvme.cuda.cufile;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.cuda.library.Downcall;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Keeps cuFile's log out of the working directory, where it would go by itself. cuFile looks at the
 * C library's environment, so that is changed, once, before the library is opened.
 */
final class CuFileLog {
  static final String VARIABLE = "CUFILE_LOGFILE_PATH";

  /** Where cuFile reads its configuration, unless {@code CUFILE_ENV_PATH_JSON} names a file. */
  static final Path CONFIGURATION = Path.of("/etc/cufile.json");

  private static final MethodHandle SETENV =
      Downcall.of(FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS, JAVA_INT));

  /** {@code logging.dir}, on a line that is not a comment. */
  private static final Pattern FOLDER =
      Pattern.compile("^(?!\\s*//).*\"dir\"\\s*:", Pattern.MULTILINE);

  private CuFileLog() {}

  /**
   * The file that is to be the log; empty where the user has chosen one: by {@code
   * CUFILE_LOGFILE_PATH}, or by {@code logging.dir} in cuFile's configuration.
   */
  static Optional<Path> choose(Map<String, String> environment, Path configuration, Path folder) {
    String json = environment.getOrDefault("CUFILE_ENV_PATH_JSON", "");
    Path file = json.isEmpty() ? configuration : Path.of(json);
    if (!environment.getOrDefault(VARIABLE, "").isEmpty() || FOLDER.matcher(text(file)).find()) {
      return Optional.empty();
    }
    return Optional.of(folder.resolve("gpunvme-cufile-" + ProcessHandle.current().pid() + ".log"));
  }

  private static String text(Path file) {
    try {
      return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      return ""; // cuFile cannot read it either.
    }
  }

  /** Tells the C library; for code that is loaded from now on. */
  static void set(Path log) {
    MemorySegment setenv = Linker.nativeLinker().defaultLookup().findOrThrow("setenv");
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocateFrom(VARIABLE);
      MemorySegment value = arena.allocateFrom(log.toString());
      int failed = (int) SETENV.invokeExact(setenv, name, value, 1);
      if (failed != 0) {
        throw new IllegalStateException("the environment has no room for " + VARIABLE);
      }
    } catch (Throwable t) {
      throw Downcall.unexpected(t);
    }
  }
}
