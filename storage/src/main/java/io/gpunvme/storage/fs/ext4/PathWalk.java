package io.gpunvme.storage.fs.ext4;

import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.fs.FileSystemException.Kind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;

/** The way from the root to what a path names. The folders passed are kept for {@code ..}. */
final class PathWalk {
  private static final int MOST_LINKS = 40; // as in Linux

  private final Ext4Volume volume;
  private final String path;
  private final Deque<String> ahead = new ArrayDeque<>();
  private final List<Inode> passed = new ArrayList<>(); // the last is where we are
  private boolean mustBeFolder;
  private int links;

  PathWalk(Ext4Volume volume, String path) {
    this.volume = volume;
    this.path = path;
    passed.add(volume.inode(Inode.ROOT, "root"));
    push(path);
  }

  Inode find(boolean follow) {
    while (!ahead.isEmpty()) {
      String name = ahead.pop();
      Inode here = passed.getLast();
      if (here.kind() != FileNode.Kind.FOLDER) {
        throw failure(
            Kind.WRONG_KIND, "'%s' cannot be in something that is not a folder".formatted(name));
      }
      if (name.equals("..")) {
        if (passed.size() > 1) {
          passed.removeLast();
        }
      } else if (!name.equals(".")) {
        enter(here, name, follow);
      }
    }
    Inode last = passed.getLast();
    if (mustBeFolder && last.kind() != FileNode.Kind.FOLDER) {
      throw failure(Kind.WRONG_KIND, "it ends with a slash, but is not a folder");
    }
    return last;
  }

  private void enter(Inode folder, String name, boolean follow) {
    byte[] bytes = Names.bytes(name);
    Dirent entry = bytes == null ? null : new Ext4Folder(volume, folder).find(bytes);
    if (entry == null) {
      throw failure(Kind.NOT_FOUND, "there is no '%s' in %s".formatted(name, folder.place()));
    }
    Inode inode = volume.inode(entry.inode(), "name '" + name + "' in " + folder.place());
    boolean last = ahead.isEmpty() && !mustBeFolder;
    if (inode.kind() != FileNode.Kind.LINK || last && !follow) {
      passed.add(inode);
      return;
    }
    if (++links > MOST_LINKS) {
      throw failure(
          Kind.LINKS, "more than %d links in a row, the last is '%s'".formatted(MOST_LINKS, name));
    }
    String target = LinkTarget.read(volume, inode);
    if (target.startsWith("/")) {
      passed.subList(1, passed.size()).clear();
    }
    push(target);
  }

  private void push(String text) {
    List<String> names = new ArrayList<>();
    for (String name : text.split("/", -1)) {
      if (!name.isEmpty()) {
        names.add(name);
      }
    }
    if (ahead.isEmpty()) {
      mustBeFolder |= text.endsWith("/");
    }
    Collections.reverse(names);
    names.forEach(ahead::push);
  }

  private FileSystemException failure(Kind kind, String what) {
    return new FileSystemException(kind, volume.reader.name() + ":" + path, what);
  }
}
