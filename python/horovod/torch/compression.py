from ddl.torch.compression import Compression, Compressor, FP16Compressor, NoneCompressor
