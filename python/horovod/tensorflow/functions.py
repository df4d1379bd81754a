from ddl.tensorflow.functions import *
