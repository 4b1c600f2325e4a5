package io.gpunvme.core.weights.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.nvme.fuzz.FuzzSeed;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever we accept the reference of safetensors accepts, and finds the same in it; what we refuse
 * and it accepts is refused for a rule that it does not keep.
 */
class ReferenceAgreementTest {
  private static final int FILES = 4000;

  /** Where we are stricter, by what our message says. */
  private static final List<String> STRICTER =
      List.of(
          "is there twice",
          "begin with '{'",
          "neither with '}' nor with spaces",
          "an object is expected",
          "more than 64 dimensions",
          "from 0 to 2^63 - 1");

  @Test
  void onRightAndWrongFiles(@TempDir Path folder) throws Exception {
    FuzzSeed seed = FuzzSeed.announce("agreement with safetensors");
    int[] numbers = seed.cases(FILES).toArray();
    for (int number : numbers) {
      Files.write(folder.resolve("%05d.safetensors".formatted(number)), file(seed, number));
    }
    Map<String, Integer> outcomes = new TreeMap<>();
    List<String> lines = ReferencePython.run("check_headers.py", folder).lines().toList();
    assertThat(lines).hasSize(numbers.length);
    for (int i = 0; i < lines.size(); i++) {
      JsonObject theirs = JsonParser.parseString(lines.get(i)).getAsJsonObject();
      String outcome = compare(file(seed, numbers[i]), theirs, seed.describe(numbers[i]));
      outcomes.merge(outcome, 1, Integer::sum);
    }
    System.out.println("agreement with safetensors: " + outcomes);
    assertThat(seed.isReplay() || outcomes.get("both accept") > FILES / 8).isTrue();
    assertThat(seed.isReplay() || outcomes.get("both refuse") > FILES / 8).isTrue();
  }

  /** Every fourth is as it should be, every fourth is laid out by our writer. */
  private static byte[] file(FuzzSeed seed, int number) {
    SplittableRandom random = seed.random(number);
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
      ours = Safetensors.read(new MemoryReader(file));
    } catch (FormatException e) {
      if (!error.isEmpty()) {
        return "both refuse";
      }
      assertThat(STRICTER).as("%s: %s", which, e.getMessage()).anyMatch(e.getMessage()::contains);
      return "only we refuse";
    }
    assertThat(error).as("%s: only we accept", which).isEmpty();
    assertThat(
            StreamSupport.stream(theirs.getAsJsonArray("tensors").spliterator(), false)
                .map(JsonElement::getAsJsonObject)
                .map(t -> List.of(t.get("name"), t.get("type"), t.get("shape"), t.get("bytes")))
                .map(Object::toString))
        .as(which)
        .containsExactlyInAnyOrderElementsOf(
            ours.tensors().stream().map(ReferenceAgreementTest::described).toList());
    return "both accept";
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
