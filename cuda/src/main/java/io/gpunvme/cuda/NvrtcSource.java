package io.gpunvme.cuda;

import java.util.Map;

/**
 * A CUDA C++ program to compile.
 *
 * @param name of the file, for the compiler's messages
 * @param text of the program
 * @param headers texts of the included files, by the name in {@code #include}
 */
public record NvrtcSource(String name, String text, Map<String, String> headers) {
  /** Takes a copy of {@code headers}. */
  public NvrtcSource {
    headers = Map.copyOf(headers);
  }
}
