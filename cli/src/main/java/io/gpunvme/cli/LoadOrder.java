package io.gpunvme.cli;

import io.gpunvme.models.LoadRequest;
import io.gpunvme.models.LoadRequest.Order;
import io.gpunvme.models.TensorNames;
import io.gpunvme.models.Weights;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/**
 * The order in which tensors are loaded.
 *
 * @param order of all of them, or {@link Order#GIVEN}
 * @param names of tensors and layers, if these are given
 */
record LoadOrder(Order order, List<String> names) {
  private static final long LONGEST_FILE = 64 << 20;

  /** Reads {@code file}, {@code layers}, {@code NAME,NAME} or {@code @FILE}. */
  static LoadOrder parse(String text) throws IOException {
    return switch (text) {
      case "file" -> new LoadOrder(Order.FILE, List.of());
      case "layers" -> new LoadOrder(Order.LAYERS, List.of());
      default -> {
        List<String> names =
            text.startsWith("@") ? lines(Path.of(text.substring(1))) : List.of(text.split(","));
        if (names.isEmpty()) {
          throw new UsageException("--order " + text + " names nothing");
        }
        yield new LoadOrder(Order.GIVEN, names);
      }
    };
  }

  private static List<String> lines(Path file) throws IOException {
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    if (Files.size(file) > LONGEST_FILE) {
      throw new UsageException("--order: " + file + " is longer than 64 MiB");
    }
    return Files.readAllLines(file).stream().map(String::strip).filter(s -> !s.isEmpty()).toList();
  }

  LoadRequest of(LoadRequest request, Weights weights) {
    return order == Order.GIVEN
        ? request.names(TensorNames.of(weights.tensors().keySet(), names)).order(order)
        : request.order(order);
  }
}
