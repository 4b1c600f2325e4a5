package io.gpunvme.models.format;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.storage.fs.BlockReader;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Models written by the libraries of safetensors, Hugging Face and ggml are read as what they are.
 * {@code -Dgpunvme.models=FOLDER} reads those that {@code make_models.py} made before.
 */
class ReferenceModelsTest {
  private static final int MODELS = 240;
  private static final int CHUNK = 1 << 20;

  @Test
  void everyTensorIsWhereWeThinkItIs(@TempDir Path temporary) throws Exception {
    Path folder = folder(temporary);
    JsonObject expected =
        JsonParser.parseString(Files.readString(folder.resolve("expected.json"))).getAsJsonObject();
    JsonArray models = expected.getAsJsonArray("models");
    int tensors = 0;
    for (JsonElement model : models) {
      tensors += check(folder, model.getAsJsonObject());
    }
    System.out.printf(
        "%d models, %d tensors by %s; missing: %s%n",
        models.size(), tensors, expected.get("writers"), expected.get("missing"));
    assertThat(tensors).isPositive();
  }

  private static Path folder(Path temporary) throws IOException, InterruptedException {
    String made = System.getProperty("gpunvme.models");
    if (made != null) {
      return Path.of(made);
    }
    long seed = Cases.announce("models by others").random(0).nextInt(1 << 30);
    Path folder = temporary.resolve("models");
    System.out.print(
        ReferencePython.run("make_models.py", folder, "--count", MODELS, "--seed", seed));
    return folder;
  }

  private static int check(Path folder, JsonObject expected) throws NoSuchAlgorithmException {
    String path = expected.get("path").getAsString();
    try (ModelFiles model = ModelFiles.open(folder.resolve(path))) {
      JsonArray tensors = expected.getAsJsonArray("tensors");
      assertThat(model.tensors().keySet())
          .as(path)
          .containsExactlyInAnyOrderElementsOf(
              StreamSupport.stream(tensors.spliterator(), false)
                  .map(t -> t.getAsJsonObject().get("name").getAsString())
                  .toList());
      assertThat(model.unnamed()).isEmpty();
      for (JsonElement element : tensors) {
        JsonObject tensor = element.getAsJsonObject();
        Placed found = model.tensors().get(tensor.get("name").getAsString());
        TensorInfo info = found.tensor();
        assertThat(info.type()).hasToString(tensor.get("type").getAsString());
        assertThat(info.shape()).as("%s: %s", path, info).containsExactly(shape(tensor));
        assertThat(info.bytes())
            .as("%s: %s", path, info)
            .isEqualTo(tensor.get("bytes").getAsLong());
        assertThat(sha256(model.files().get(found.file()).reader(), info))
            .as("%s: %s", path, info)
            .isEqualTo(tensor.get("sha256").getAsString());
      }
      ModelHeader header = model.files().getFirst().header();
      expected
          .getAsJsonObject("metadata")
          .asMap()
          .forEach(
              (key, value) -> {
                JsonObject typed = value.getAsJsonObject();
                assertThat(header.metadata()).as(path).containsKey(key);
                checkValue(
                    header.metadata().get(key),
                    typed.get("type").getAsString(),
                    typed.get("value"));
              });
      if (expected.get("kind").getAsString().equals("safetensors")) {
        checkLayout(header);
      }
      return tensors.size();
    }
  }

  private static long[] shape(JsonObject tensor) {
    return StreamSupport.stream(tensor.getAsJsonArray("shape").spliterator(), false)
        .mapToLong(JsonElement::getAsLong)
        .toArray();
  }

  private static void checkValue(MetaValue found, String type, JsonElement expected) {
    assertThat(found.type()).hasToString(type);
    if (found instanceof MetaValue.Items items) {
      assertThat(items.count()).isEqualTo(expected.getAsJsonArray().size());
      List<MetaValue> all = new ArrayList<>();
      items.forEach(all::add);
      for (int i = 0; i < all.size(); i++) {
        checkValue(all.get(i), items.elementType().toString(), expected.getAsJsonArray().get(i));
      }
    } else if (found instanceof MetaValue.Real(var _, double value)) {
      assertThat(value).isEqualTo(expected.getAsDouble());
    } else {
      assertThat(found).hasToString(expected.getAsString());
    }
  }

  /** Our writer puts the same tensors in the same order. */
  private static void checkLayout(ModelHeader header) {
    SafetensorsWriter writer = new SafetensorsWriter();
    header.tensors().forEach(t -> writer.tensor(t.name(), t.type(), t.shape()));
    List<TensorInfo> ours = writer.layout(SafetensorsWriter.WORD).tensors();
    List<TensorInfo> theirs = new ArrayList<>(header.tensors());
    // What has no bytes has no order in the file.
    assertThat(ours.stream().filter(t -> t.bytes() > 0).map(TensorInfo::name))
        .containsExactlyElementsOf(
            theirs.stream().filter(t -> t.bytes() > 0).map(TensorInfo::name).toList());
    assertThat(header.dataOffset() % SafetensorsWriter.WORD).isZero();
  }

  private static String sha256(BlockReader reader, TensorInfo tensor)
      throws NoSuchAlgorithmException {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    byte[] chunk = new byte[(int) Math.min(CHUNK, tensor.bytes())];
    for (long at = tensor.offset(); at < tensor.end(); at += chunk.length) {
      int length = (int) Math.min(chunk.length, tensor.end() - at);
      reader.read(at, MemorySegment.ofArray(chunk).asSlice(0, length));
      digest.update(chunk, 0, length);
    }
    return HexFormat.of().formatHex(digest.digest());
  }
}
