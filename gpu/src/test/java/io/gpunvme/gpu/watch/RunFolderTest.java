package io.gpunvme.gpu.watch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunFolderTest {
  @TempDir Path tmp;

  private RunFolder folder() {
    return RunFolder.all(Map.of(), tmp).getFirst();
  }

  private static void permit(Path path, String who) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(who));
  }

  @Test
  void isMadeForThisUserOnly() throws IOException {
    RunFolder folder = folder();
    assertThat(folder.path().getFileName().toString()).matches("gpunvme-\\d+");
    assertThat(folder.exists()).isFalse();
    folder.make();
    folder.make();
    assertThat(folder.exists()).isTrue();
    assertThat(folder.refusal()).isNull();
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder.path())))
        .isEqualTo("rwx------");
  }

  @Test
  void theSessionsFolderComesFirst() throws IOException {
    Path session = Files.createDirectory(tmp.resolve("session"));
    permit(session, "rwx------");
    Map<String, String> environment = Map.of("XDG_RUNTIME_DIR", session.toString());
    List<RunFolder> both = RunFolder.all(environment, tmp);
    assertThat(both).extracting(RunFolder::path).startsWith(session.resolve("gpunvme")).hasSize(2);

    permit(session, "rwxr-xr-x");
    assertThat(RunFolder.all(environment, tmp)).containsExactly(folder());
    assertThat(RunFolder.all(Map.of("XDG_RUNTIME_DIR", "here"), tmp)).containsExactly(folder());
    assertThat(RunFolder.all(Map.of("XDG_RUNTIME_DIR", tmp + "/none"), tmp))
        .containsExactly(folder());
  }

  @Test
  void aLinkIsNotFollowed() throws IOException {
    Path elsewhere = Files.createDirectory(tmp.resolve("elsewhere"));
    permit(elsewhere, "rwx------");
    Files.createSymbolicLink(folder().path(), elsewhere);
    refused("is no folder");
    assertThat(elsewhere).isEmptyDirectory();
  }

  @Test
  void aFileIsRefused() throws IOException {
    Files.createFile(folder().path());
    refused("is no folder");
  }

  @Test
  void oneThatOthersMayEnterIsRefused() throws IOException {
    Files.createDirectory(folder().path());
    permit(folder().path(), "rwxr-xr-x");
    refused("chmod 700");
  }

  @Test
  void oneOfAnotherUserIsRefused() throws IOException {
    Path path = Files.createDirectory(folder().path());
    permit(path, "rwx------");
    try {
      Files.setAttribute(path, "unix:uid", 12345);
    } catch (IOException e) {
      Assumptions.abort("only root can give a folder to another user");
    }
    refused("belongs to another user, 12345");
  }

  private void refused(String why) {
    RunFolder folder = folder();
    assertThat(folder.refusal()).contains(folder.path().toString(), why);
    assertThatThrownBy(folder::make).isInstanceOf(IOException.class).hasMessageContaining(why);
    Processes all = Processes.ask(List.of(folder));
    assertThat(all.answers()).isEmpty();
    assertThat(all.problems()).singleElement().asString().contains(why);
  }
}
