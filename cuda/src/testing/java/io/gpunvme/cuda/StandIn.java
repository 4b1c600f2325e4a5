package io.gpunvme.cuda;

import io.gpunvme.testing.NativeCompiler;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The libraries that stand in for NVIDIA's: {@code cuda/src/testing/c}. */
public final class StandIn {
  private static final Path SOURCES = Path.of("../cuda/src/testing/c").toAbsolutePath();

  private StandIn() {}

  /**
   * Compiles one, once for all who want it with the same options; the test is skipped without gcc.
   *
   * @param name as in {@code fake_cufile.c}, whose library has {@code libcufile} in its name
   */
  public static Path compile(String name, String... options) {
    List<String> all = new ArrayList<>(List.of("-O1", "-pthread"));
    all.addAll(List.of(options));
    String text = "#include \"%s/fake_%s.c\"\n".formatted(SOURCES, name);
    return NativeCompiler.C.library("lib" + name, text, all.toArray(String[]::new));
  }
}
