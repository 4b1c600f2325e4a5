package io.gpunvme.cuda;

import java.util.Map;

/**
 * A CUDA C++ program to compile.
 *
 * @param name of the file, for the compiler's messages
 * @param text of the program
 * @param headers text of what it includes, by the name in its {@code #include}
 */
public record NvrtcSource(String name, String text, Map<String, String> headers) {
  /** Takes a copy of {@code headers}. */
  public NvrtcSource {
    headers = Map.copyOf(headers);
  }
}
