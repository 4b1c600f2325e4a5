package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.storage.StorageAddress;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Models that other people's programs wrote ({@code make_models.py}) in GPU memory: every tensor's
 * SHA-256. Their folder is {@code -Dgpunvme.models}.
 */
@Tag("gpu")
class ReferenceWeightsGpuTest {
  @Test
  void everyTensorArrivesBitForBit() throws Exception {
    String folder = System.getProperty("gpunvme.models");
    assumeTrue(folder != null, "-Dgpunvme.models names no folder that make_models.py filled");
    Path models = Path.of(folder);
    JsonObject expected =
        JsonParser.parseString(Files.readString(models.resolve("expected.json"))).getAsJsonObject();
    int count = 0;
    int tensors = 0;
    try (Accelerator accelerator = TestGpu.open()) {
      for (JsonElement model : expected.getAsJsonArray("models")) {
        JsonObject one = model.getAsJsonObject();
        Path path = models.resolve(one.get("path").getAsString());
        try (Weights weights = Weights.open(StorageAddress.parse("file:" + path), accelerator);
            LoadedWeights loaded = weights.load(LoadRequest.all())) {
          assertThat(loaded.tensors()).hasSize(one.getAsJsonArray("tensors").size());
          for (JsonElement element : one.getAsJsonArray("tensors")) {
            JsonObject tensor = element.getAsJsonObject();
            assertThat(sha256(loaded.tensor(tensor.get("name").getAsString())))
                .as("%s: %s", path, tensor.get("name"))
                .isEqualTo(tensor.get("sha256").getAsString());
            tensors++;
          }
          count++;
        }
      }
    }
    System.out.printf("%d models, %d tensors by %s%n", count, tensors, expected.get("writers"));
    assertThat(tensors).isPositive();
  }

  private static String sha256(LoadedTensor tensor) throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    if (tensor.bytes() > 0) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment copy = arena.allocate(tensor.bytes());
        tensor.buffer().copyToHost(tensor.offset(), copy);
        digest.update(copy.asByteBuffer());
      }
    }
    return HexFormat.of().formatHex(digest.digest());
  }
}
