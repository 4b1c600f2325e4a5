package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cli.UnderCuFile.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The map and the address files of the library that stands in for cuFile. */
class UnderCuFileTest {
  @TempDir private Path temporary;
  private Path folder;
  private Path file;

  @BeforeEach
  void aFile() throws IOException {
    folder = Files.createDirectories(temporary.toRealPath().resolve("mnt/data"));
    file = Files.write(folder.resolve("model.bin"), new byte[5000]);
  }

  private UnderCuFile with(String map) throws IOException {
    return UnderCuFile.of(file, Map.of("GPUNVME_CUFILE_MAP", map));
  }

  private void is(String map, Kind kind, String address) throws IOException {
    UnderCuFile found = with(map);
    assertThat(found.kind()).as(map).isEqualTo(kind);
    assertThat(found.address()).as(map).isEqualTo(address);
  }

  @Test
  void theMapHasFolders() throws IOException {
    is("", Kind.FILE, null);
    is(folder + "=vfio:0000:01:00.0#1", Kind.MAPPED, "vfio:0000:01:00.0#1:/model.bin");
    is(folder + "//=sim:", Kind.MAPPED, "sim::/model.bin");
    is(folder.getParent() + "=sim:a=1,b=2", Kind.MAPPED, "sim:a=1,b=2:/data/model.bin");
    is("/=sim:", Kind.MAPPED, "sim::" + file);
    is("/other=sim:a=1,b=2," + folder + "=kmod:x", Kind.MAPPED, "kmod:x:/model.bin");
    is(folder + "=sim:first," + folder + "=sim:second", Kind.MAPPED, "sim:first:/model.bin");
    is(folder.toString().replaceFirst(".$", "") + "=sim:", Kind.FILE, null);
    is(file + "=sim:", Kind.FILE, null);
  }

  @Test
  void theLongestFolderCounts() throws IOException {
    is(folder.getParent() + "=sim:a," + folder + "=sim:b", Kind.MAPPED, "sim:b:/model.bin");
    is(folder + "=sim:b," + folder.getParent() + "=sim:a,/bad", Kind.MAPPED, "sim:b:/model.bin");
  }

  @Test
  void aFolderMayBeALink() throws IOException {
    Path link = Files.createSymbolicLink(temporary.resolve("link"), folder.getParent());
    is(link + "=sim:", Kind.MAPPED, "sim::/data/model.bin");
  }

  @Test
  void itIsForReadingUnlessItSaysMore() throws IOException {
    assertThat(with(folder + "=sim:").text()).endsWith("for reading");
    is(folder + "=sim:a=1:rw", Kind.MAPPED, "sim:a=1:/model.bin");
    assertThat(with(folder + "=sim:a=1:rw").text()).endsWith("for reading and writing");
  }

  @Test
  void aLinkIsWhatItLeadsTo() throws IOException {
    file = Files.createSymbolicLink(temporary.resolve("link"), file);
    is(folder + "=sim:", Kind.MAPPED, "sim::/model.bin");
  }

  @Test
  void whatIsNoMapIsSaid() throws IOException {
    is("data=sim:", Kind.FILE, null);
    assertThat(with("/none=sim:,/data").text())
        .endsWith("GPUNVME_CUFILE_MAP has no /FOLDER=ADDRESS where it says '/data'");
  }

  @Test
  void aSmallFileMayBeAnAddress() throws IOException {
    Files.writeString(file, "gpunvme:sim:size=1MiB\r\n");
    is("", Kind.ADDRESS, "sim:size=1MiB");
    is(folder + "=kmod:x", Kind.MAPPED, "kmod:x:/model.bin");
    Files.writeString(file, "gpunvme:" + "x".repeat(4096));
    is("", Kind.FILE, null);
    for (String text :
        List.of("gpunvme", "gpunvme:a\nb", "gpunvme: a", "gpunvme:a\0", "gpunvme:\n\n")) {
      Files.writeString(file, text);
      is("", Kind.FILE, null);
    }
  }
}
