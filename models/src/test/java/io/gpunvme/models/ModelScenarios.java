package io.gpunvme.models;

import static io.gpunvme.storage.injection.Attempt.succeeds;
import static io.gpunvme.storage.injection.Attempt.twice;
import static io.gpunvme.storage.injection.ScenarioMemory.random;
import static io.gpunvme.storage.injection.ScenarioMemory.requireEqual;
import static io.gpunvme.storage.injection.ScenarioMemory.seen;
import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.GgufBytes;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.tensor.TensorKernels;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.injection.Scenario;
import io.gpunvme.storage.injection.ScenarioMemory;
import io.gpunvme.testing.Images;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/** What people do with a model, on the CPU stand-in, and with one for the CUDA driver. */
public final class ModelScenarios {
  private static final String INDEX = "model.safetensors.index.json";
  private static final long SMALL_BATCH = 50_000;
  private static final long RING = 1 << 20;

  private static final StorageOptions OPTIONS =
      StorageOptions.defaults()
          .withWrite(true)
          .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));

  private ModelScenarios() {}

  /** What is done with an open model. */
  private interface Use {
    void of(Weights weights, Map<String, byte[]> content) throws Exception;
  }

  /** A model's files by name, and what its tensors have in them. */
  private record Model(Map<String, byte[]> files, Map<String, byte[]> content) {
    Model() {
      this(new LinkedHashMap<>(), new LinkedHashMap<>());
    }

    Path write(Path folder) throws IOException {
      for (Map.Entry<String, byte[]> file : files.entrySet()) {
        Files.write(folder.resolve(file.getKey()), file.getValue());
      }
      return folder;
    }
  }

  /** Every scenario: a use, a model, where it lies, an accelerator. */
  static Stream<String> names() {
    List<String> files =
        List.of("safetensors mmap", "safetensors pinned", "gguf mmap", "gguf pinned");
    List<String> ssds = List.of("safetensors ssd", "raw ssd");
    List<String> some = List.of("safetensors pinned", "raw ssd");
    return Stream.of(
            with("load", files, "cpu"),
            with("load", ssds, "cpu"),
            with("load", files, "gpu"),
            with("load", ssds, "gpu"),
            with("resume", some, "cpu"),
            with("resume", some, "gpu"),
            with("read", some, "cpu"),
            with("read", some, "gpu"),
            // Its kernels do not run on the stand-in for the CUDA driver.
            with("slices", some, "cpu"),
            with("sums", some, "cpu"),
            with("kernels", List.of("gguf mmap"), "gpu"))
        .flatMap(Function.identity());
  }

  private static Stream<String> with(String use, List<String> models, String accelerator) {
    return models.stream().map(model -> String.join(" ", use, model, accelerator));
  }

  /** A scenario of {@link #names}. */
  public static Scenario of(String name) throws IOException {
    String[] words = name.split(" ");
    Use use =
        switch (words[0]) {
          case "load" -> ModelScenarios::load;
          case "resume" -> ModelScenarios::resume;
          case "read" -> ModelScenarios::read;
          case "slices" -> ModelScenarios::slices;
          case "sums" -> ModelScenarios::sums;
          case "kernels" -> ModelScenarios::kernels;
          default -> throw new IllegalArgumentException(name);
        };
    ScenarioMemory memory = ScenarioMemory.of(words[3]);
    Model model = words[1].equals("gguf") ? gguf() : safetensors();
    byte[] image = words[2].equals("ssd") ? image(model, words[1].equals("raw")) : new byte[0];
    return folder -> {
      String address =
          image.length == 0
              ? "file:%s?path=%s%s"
                  .formatted(
                      model.write(folder),
                      words[2],
                      words[2].equals("pinned") ? "&chunk=256KiB&ring=1MiB" : "")
              : "sim:file="
                  + Files.write(folder.resolve("ssd.img"), image)
                  + (words[1].equals("raw") ? "" : ":/");
      memory.with(accelerator -> withWeights(address, accelerator, model.content(), use));
    };
  }

  private static void withWeights(
      String address, Accelerator accelerator, Map<String, byte[]> content, Use use)
      throws Exception {
    List<Weights> weights = new ArrayList<>();
    twice(
        "opens",
        () -> weights.add(Weights.open(StorageAddress.parse(address), accelerator, OPTIONS)));
    try {
      use.of(weights.getFirst(), content);
    } finally {
      succeeds("the weights close", weights.getFirst()::close);
    }
  }

  // ---- models

  /** Two files and an index. */
  private static Model safetensors() {
    Model model = new Model();
    SafetensorsWriter first = new SafetensorsWriter();
    first.tensor("wide", ElementType.F32, 6, 8192);
    first.tensor("odd", ElementType.U8, 12_347);
    first.tensor("nothing", ElementType.F16, 3, 0, 5);
    SafetensorsWriter second = new SafetensorsWriter();
    second.tensor("embed", ElementType.F16, 300, 128);
    second.tensor("scalar", ElementType.F64);
    List<String> places = new ArrayList<>();
    for (SafetensorsWriter writer : List.of(first, second)) {
      SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
      String name = "part%d.safetensors".formatted(model.files().size());
      byte[] file = random(model.files().size(), (int) layout.fileBytes());
      System.arraycopy(layout.head(), 0, file, 0, layout.head().length);
      for (TensorInfo t : layout.tensors()) {
        places.add("\"%s\":\"%s\"".formatted(t.name(), name));
        model.content().put(t.name(), Arrays.copyOfRange(file, (int) t.offset(), (int) t.end()));
      }
      model.files().put(name, file);
    }
    String index = "{\"metadata\":{},\"weight_map\":{%s}}".formatted(String.join(",", places));
    model.files().put(INDEX, index.getBytes());
    return model;
  }

  private static Model gguf() {
    Model model = new Model();
    int[] lengths = {12_347, 200_000, 32};
    GgufBytes file = GgufBytes.start(lengths.length, 0);
    ByteArrayOutputStream data = new ByteArrayOutputStream();
    for (int length : lengths) {
      byte[] bytes = random(length, length);
      String name = "tensor of " + length;
      file.tensor(name, /* I8 */ 24, data.size(), length);
      data.writeBytes(Arrays.copyOf(bytes, (length + 31) / 32 * 32));
      model.content().put(name, bytes);
    }
    model.files().put("m.gguf", file.pad(32).raw(data.toByteArray()).bytes());
    return model;
  }

  /** A device with a model: a raw one, or in a file system. */
  private static byte[] image(Model model, boolean isRaw) throws IOException {
    Path folder = model.write(Files.createTempDirectory("model"));
    Path image = Files.createTempFile("image", null);
    try {
      if (isRaw) {
        Files.write(image, new byte[2 << 20]);
        try (Accelerator cpu = CpuAccelerator.open();
            Weights source = Weights.open(StorageAddress.parse("file:" + folder), cpu);
            GpuStorage target =
                GpuStorage.open(StorageAddress.parse("sim:file=" + image), cpu, OPTIONS)) {
          RawModelWriter.prepare(source, target, RawWriteOptions.named("a model"), SMALL_BATCH)
              .run(LoadListener.NONE);
        }
      } else {
        Images.ext4(image, "2M", folder);
      }
      return Files.readAllBytes(image);
    } finally {
      for (String file : model.files().keySet()) {
        Files.delete(folder.resolve(file));
      }
      Files.delete(folder);
      Files.delete(image);
    }
  }

  // ---- uses

  private static void load(Weights weights, Map<String, byte[]> content) {
    for (LoadRequest.Memory memory : LoadRequest.Memory.values()) {
      List<LoadedWeights> loaded = new ArrayList<>();
      twice("loads", () -> loaded.add(weights.load(LoadRequest.all().memory(memory))));
      requireAll(loaded.getFirst(), content);
      succeeds("the tensors close", loaded.getFirst()::close);
    }
  }

  private static void requireAll(LoadedWeights loaded, Map<String, byte[]> content) {
    assertThat(loaded.names()).containsExactlyInAnyOrderElementsOf(content.keySet());
    for (LoadedTensor t : loaded.tensors()) {
      byte[] expected = content.get(t.name());
      assertThat(t.bytes()).isEqualTo(expected.length);
      byte[] bytes = seen(t.buffer(), t.offset(), expected.length);
      assertThat(Arrays.mismatch(bytes, expected)).as(t.name()).isEqualTo(-1);
    }
  }

  /** A load that failed goes on. */
  private static void resume(Weights weights, Map<String, byte[]> content) {
    Load load = weights.prepare(weights.plan(LoadRequest.all().retries(0)), null);
    load.batchBytes(SMALL_BATCH);
    List<LoadedWeights> loaded = new ArrayList<>();
    twice("loads", () -> loaded.add(load.run(LoadListener.NONE)));
    requireAll(loaded.getFirst(), content);
    succeeds("the load closes", load::close);
    succeeds("the tensors close", loaded.getFirst()::close);
  }

  /** To the caller's memory. */
  private static void read(Weights weights, Map<String, byte[]> content) {
    List<TensorTarget> targets = new ArrayList<>();
    ByteArrayOutputStream expected = new ByteArrayOutputStream();
    List<DeviceBuffer> buffer = new ArrayList<>();
    int length = content.values().stream().mapToInt(bytes -> bytes.length).sum();
    twice("allocates", () -> buffer.add(weights.accelerator().allocate(length)));
    content.forEach(
        (name, bytes) -> {
          targets.add(new TensorTarget(name, null, buffer.getFirst(), expected.size()));
          expected.writeBytes(bytes);
        });
    byte[] before = seen(buffer.getFirst(), 0, length);
    if (!succeeds("reads", () -> weights.read(targets))) {
      byte[] after = seen(buffer.getFirst(), 0, length);
      ScenarioMemory.requireOldOrRead(after, before, expected.toByteArray(), 0);
      succeeds("reads again", () -> weights.read(targets));
    }
    requireEqual(seen(buffer.getFirst(), 0, length), 0, expected.toByteArray(), 0, length);
    succeeds("the buffer closes", buffer.getFirst()::close);
  }

  /** By rows, and through the ring. */
  private static void slices(Weights weights, Map<String, byte[]> content) {
    LoadRequest request =
        LoadRequest.all()
            .slice("wide", new TensorSlice(1, 100, 200))
            .slice("embed", new TensorSlice(1, 96, 128))
            .within(0, RING);
    Map<String, byte[]> expected = new LinkedHashMap<>(content);
    expected.put("wide", columns(content.get("wide"), 4 * 8192, 4 * 100, 4 * 100));
    expected.put("embed", columns(content.get("embed"), 2 * 128, 2 * 96, 2 * 32));
    assertThat(weights.plan(request).places())
        .extracting(LoadPlan.Place::method)
        .contains(LoadPlan.Method.values());
    List<LoadedWeights> loaded = new ArrayList<>();
    twice("loads slices", () -> loaded.add(weights.load(request)));
    requireAll(loaded.getFirst(), expected);
    succeeds("the tensors close", loaded.getFirst()::close);
  }

  /** So many bytes of each row. */
  private static byte[] columns(byte[] all, int pitch, int first, int width) {
    ByteArrayOutputStream some = new ByteArrayOutputStream();
    for (int row = 0; row < all.length; row += pitch) {
      some.write(all, row + first, width);
    }
    return some.toByteArray();
  }

  private static void sums(Weights weights, Map<String, byte[]> content) {
    List<Manifest> manifest = new ArrayList<>();
    twice("sums", () -> manifest.add(weights.manifest(LoadListener.NONE)));
    content.forEach(
        (name, bytes) -> {
          CRC32C crc = new CRC32C();
          crc.update(bytes);
          assertThat(manifest.getFirst().entries().get(name))
              .isEqualTo(new Manifest.Entry(bytes.length, (int) crc.getValue()));
        });
    Load load = weights.prepare(weights.plan(LoadRequest.all()), manifest.getFirst());
    List<LoadedWeights> loaded = new ArrayList<>();
    twice("loads and compares", () -> loaded.add(load.run(LoadListener.NONE)));
    requireAll(loaded.getFirst(), content);
    succeeds("the load closes", load::close);
    succeeds("the tensors close", loaded.getFirst()::close);
  }

  private static void kernels(Weights weights, Map<String, byte[]> content) {
    List<TensorKernels> kernels = new ArrayList<>();
    twice("opens kernels", () -> kernels.add(TensorKernels.open(weights.accelerator())));
    succeeds("the kernels close", kernels.getFirst()::close);
  }
}
