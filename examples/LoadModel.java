import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.models.LoadRequest;
import io.gpunvme.models.LoadedTensor;
import io.gpunvme.models.LoadedWeights;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.path.StorageException;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Random;

/**
 * Loads all tensors of a model to the accelerator, and compares each with the bytes in its file.
 */
public final class LoadModel {
  private LoadModel() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length > 1) {
      System.err.println("usage: LoadModel [MODEL], a file or a folder; without one it makes one");
      System.exit(2);
    }
    try {
      if (arguments.length == 1) {
        load(Path.of(arguments[0]));
      } else {
        loadMadeUp();
      }
    } catch (StorageException | FormatException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private static void load(Path model) throws IOException {
    Accelerators.Choice choice = Accelerators.best();
    try (Accelerator accelerator = choice.accelerator();
        Weights weights =
            Weights.open(StorageAddress.parse("file:" + model + "?path=auto"), accelerator);
        LoadedWeights loaded = weights.load(LoadRequest.all())) {
      System.out.printf("accelerator: %s (%s)%n", accelerator.name(), choice.reason());
      System.out.printf("%s: %s%n", weights.name(), weights.format());
      Path folder = Files.isDirectory(model) ? model : model.resolveSibling("");
      for (LoadedTensor tensor : loaded.tensors()) {
        // A kernel would find its bytes at tensor.deviceAddress().
        System.out.printf(
            "%s %s%s %d bytes%n",
            tensor.name(), tensor.type(), Arrays.toString(tensor.shape()), tensor.bytes());
        TensorInfo inFile = weights.tensors().get(tensor.name());
        compare(tensor, folder.resolve(weights.file(tensor.name())), inFile.offset());
      }
      System.out.printf(
          "%d tensors, %d bytes, all as in the file%n",
          loaded.report().tensors(), loaded.report().bytes());
    }
  }

  private static void compare(LoadedTensor tensor, Path file, long offset) throws IOException {
    try (Arena arena = Arena.ofConfined();
        FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      MemorySegment expected = channel.map(MapMode.READ_ONLY, offset, tensor.bytes(), arena);
      MemorySegment actual = arena.allocate(tensor.bytes());
      tensor.buffer().copyToHost(tensor.offset(), actual);
      long different = actual.mismatch(expected);
      if (different >= 0) {
        throw new IllegalStateException(tensor.name() + " differs from its file at " + different);
      }
    }
  }

  /** Writes a small model with random weights, loads it and deletes it. */
  private static void loadMadeUp() throws IOException {
    SafetensorsWriter.Layout layout =
        new SafetensorsWriter()
            .tensor("embedding.weight", ElementType.BF16, 1000, 64)
            .tensor("layers.0.weight", ElementType.F16, 64, 256)
            .tensor("layers.0.bias", ElementType.F32, 256)
            .tensor("scale", ElementType.F32)
            .layout(SafetensorsWriter.WORD);
    Path model = Files.createTempFile("model", ".safetensors");
    try {
      try (OutputStream out = Files.newOutputStream(model)) {
        out.write(layout.head());
        Random random = new Random(1);
        for (TensorInfo tensor : layout.tensors()) {
          byte[] weights = new byte[(int) tensor.bytes()];
          random.nextBytes(weights);
          out.write(weights);
        }
      }
      load(model);
    } finally {
      Files.delete(model);
    }
  }
}
