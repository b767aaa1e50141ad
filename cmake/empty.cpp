// Keeps a folder that has only headers a library.
