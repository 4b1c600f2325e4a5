import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.LayerSize;
import io.gpunvme.models.ModelLayers;
import io.gpunvme.models.TensorPlace;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.tensor.Dequantizer;
import io.gpunvme.models.tensor.Quantized;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LayerOptions;
import io.gpunvme.storage.layer.LoadedLayer;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.IntStream;
import java.util.zip.CRC32;

/**
 * Streams the layers of a model through a ring of slots, and makes floats of the tensors that are
 * quantised. Prints a CRC-32 of each tensor's floats, as {@code zlib.crc32} of what {@code
 * gguf.quants.dequantize} makes in Python.
 */
public final class StreamLayers {
  private static final int SLOTS = 3;

  private final Weights weights;
  private final ModelLayers layers;
  private final Dequantizer dequantizer;
  private final CudaStream stream;

  private StreamLayers(Weights weights, CudaStream stream) {
    this.weights = weights;
    this.stream = stream;
    layers = ModelLayers.of(weights, ElementType.F32);
    dequantizer = Dequantizer.open(weights.accelerator());
  }

  public static void main(String[] arguments) {
    if (arguments.length != 1) {
      System.err.println("usage: StreamLayers MODEL, such as model.gguf");
      System.exit(2);
    }
    try (Accelerator accelerator = Accelerators.best().accelerator();
        Weights weights = Weights.open(StorageAddress.parse(arguments[0]), accelerator);
        CudaStream stream = accelerator.cuda().map(gpu -> gpu.context().stream()).orElse(null)) {
      new StreamLayers(weights, stream).run();
    } catch (StorageException | FormatException | InvalidRequestException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private void run() {
    long longest = layers.sizes().stream().mapToLong(LayerSize::stored).max().orElseThrow();
    try (LayerLoader loader = weights.layers(longest, SLOTS, LayerOptions.defaults())) {
      loader.prefetch(
          IntStream.range(0, layers.count()).mapToObj(i -> layers.layer(weights, i)).toList());
      for (int i = 0; i < layers.count(); i++) {
        // While this one is used, the next ones are read.
        LoadedLayer layer = loader.next();
        for (TensorPlace place : layers.tensors(i)) {
          use(weights.tensors().get(place.tensor()), layer, place.place());
        }
        layer.release();
      }
      System.out.printf(
          "%d layers of %d bytes through %d slots: %.0f%% of the reading went unnoticed%n",
          layers.count(), layers.bytes(), SLOTS, 100 * loader.stats().overlap());
    }
  }

  private void use(TensorInfo tensor, LoadedLayer layer, long place) {
    if (!Quantized.TYPES.contains(tensor.type())) {
      return;
    }
    long columns = tensor.dimension(tensor.rank() - 1);
    long bytes = ElementType.F32.bytes(tensor.elements());
    try (DeviceBuffer floats = weights.accelerator().allocate(bytes)) {
      Quantized matrix =
          new Quantized(
              tensor.type(),
              layer.buffer(),
              layer.bufferOffset() + place,
              ElementType.F32,
              floats,
              0,
              tensor.elements() / columns,
              columns,
              null);
      dequantizer.dequantize(List.of(matrix), stream);
      // A kernel in this stream would go on from here.
      if (stream != null) {
        stream.synchronize();
      }
      System.out.printf("%s %s %08x%n", tensor.name(), tensor.type(), checksum(floats, bytes));
    }
  }

  private static long checksum(DeviceBuffer floats, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(bytes);
      floats.copyToHost(0, copy);
      CRC32 crc = new CRC32();
      crc.update(copy.asByteBuffer());
      return crc.getValue();
    }
  }
}
