package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.storage.fs.BytesReader;
import io.gpunvme.testing.PipPackages;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.IntFunction;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever we accept the reference of safetensors accepts, and finds the same in it; what we refuse
 * and it accepts is refused for a rule that it does not keep.
 */
class ReferenceAgreementIT {
  private static final int FILES = 2000;

  /** Where we are stricter, by what our message says. */
  private static final List<String> STRICTER =
      List.of(
          "is there twice",
          "begin with '{'",
          "does not end with '}'",
          "an object is expected",
          "more than 64 dimensions",
          "from 0 to 2^63 - 1");

  @Test
  void onSafetensors(@TempDir Path folder) throws Exception {
    Map<String, Integer> outcomes = compareAll(folder, "safetensors", this::safetensors);
    assertThat(outcomes.getOrDefault("both accept", 0)).isGreaterThan(FILES / 8);
    assertThat(outcomes.getOrDefault("both refuse", 0)).isGreaterThan(FILES / 8);
  }

  /** ggml's Python package checks little: only what both read is compared. */
  @Test
  void onGguf(@TempDir Path folder) throws Exception {
    Map<String, Integer> outcomes = compareAll(folder, "gguf", this::gguf);
    assertThat(outcomes.getOrDefault("both accept", 0)).isGreaterThan(FILES / 8);
  }

  private static Map<String, Integer> compareAll(
      Path folder, String format, BiFunction<SplittableRandom, Integer, byte[]> maker)
      throws IOException, InterruptedException {
    ReferencePython.run("check_headers.py", folder); // skips before there is any work
    Cases cases = Cases.announce("agreement about " + format);
    int[] numbers = cases.numbers(FILES);
    IntFunction<byte[]> file = number -> maker.apply(cases.random(number), number);
    for (int number : numbers) {
      Files.write(folder.resolve("%05d.%s".formatted(number, format)), file.apply(number));
    }
    List<String> lines = ReferencePython.run("check_headers.py", folder).lines().toList();
    assertThat(lines).hasSize(numbers.length);
    Map<String, Integer> outcomes = new TreeMap<>();
    for (int i = 0; i < lines.size(); i++) {
      JsonObject theirs = JsonParser.parseString(lines.get(i)).getAsJsonObject();
      if (theirs.get("error").getAsString().equals("ImportError: missing")) {
        String reason = PipPackages.why(format);
        System.out.println("SKIP agreement about " + format + ": " + reason);
        Assumptions.abort(reason);
      }
      String outcome = compare(file.apply(numbers[i]), theirs, cases.describe(numbers[i]));
      outcomes.merge(outcome, 1, Integer::sum);
    }
    System.out.println("agreement about " + format + ": " + outcomes);
    Assumptions.assumeFalse(cases.isReplay(), "one case says nothing about totals");
    return outcomes;
  }

  /** Right ones: on an array that is too long the package counts for ever. */
  private byte[] gguf(SplittableRandom random, int number) {
    return RandomModel.gguf(random).file;
  }

  /** Every fourth is as it should be, every fourth is laid out by our writer. */
  private byte[] safetensors(SplittableRandom random, int number) {
    RandomModel model = RandomModel.safetensors(random);
    return switch (number % 4) {
      case 0 -> model.file;
      case 1 -> {
        SafetensorsWriter writer = new SafetensorsWriter().metadata("a", "\u2028\"é");
        model.tensors.forEach(t -> writer.tensor(t.name(), t.type(), t.shape()));
        SafetensorsWriter.Layout layout = writer.layout(8 << random.nextInt(10));
        yield Arrays.copyOf(layout.head(), (int) layout.fileBytes());
      }
      default -> Mutations.mutated(random, model.file);
    };
  }

  private static String compare(byte[] file, JsonObject theirs, String which) {
    String error = theirs.get("error").getAsString();
    ModelHeader ours;
    try {
      ours = ModelFiles.readHeader(new BytesReader(file));
    } catch (FormatException e) {
      if (!error.isEmpty()) {
        return "both refuse";
      }
      assertThat(STRICTER).as("%s: %s", which, e.getMessage()).anyMatch(e.getMessage()::contains);
      return "only we refuse";
    }
    if (isGguf(file) && ours.tensors().stream().anyMatch(ReferenceAgreementIT::isBeyond)) {
      return "beyond the package";
    }
    assertThat(error).as("%s: only we accept", which).isEmpty();
    assertThat(
            StreamSupport.stream(theirs.getAsJsonArray("tensors").spliterator(), false)
                .map(JsonElement::getAsJsonObject)
                .map(t -> List.of(t.get("name"), t.get("type"), t.get("shape"), t.get("bytes")))
                .map(Object::toString))
        .as(which)
        .containsExactlyInAnyOrderElementsOf(
            ours.tensors().stream().map(ReferenceAgreementIT::described).toList());
    return "both accept";
  }

  /** A type newer than version 0.19 of it, one whose size it has wrong, and a scalar as bytes. */
  private static boolean isBeyond(TensorInfo t) {
    return t.type() == ElementType.Q2_0
        || t.type() == ElementType.Q8_1
        || (t.type() == ElementType.BF16 && t.rank() == 0);
  }

  private static boolean isGguf(byte[] file) {
    return file.length > 3 && file[0] == 'G' && file[1] == 'G' && file[2] == 'U' && file[3] == 'F';
  }

  private static String described(TensorInfo t) {
    Gson gson = new GsonBuilder().disableHtmlEscaping().create();
    return List.of(
            gson.toJsonTree(t.name()),
            gson.toJsonTree(t.type().name()),
            gson.toJsonTree(t.shape()),
            gson.toJsonTree(t.bytes()))
        .toString();
  }
}
