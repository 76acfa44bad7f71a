//! Decoded tiles as Arrow arrays, without a copy.

use std::sync::Arc;

use arrow_array::{ArrayRef, ArrowPrimitiveType, LargeListArray, PrimitiveArray, RecordBatch};
use arrow_buffer::{ArrowNativeType, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytemuck::Pod;

use super::csr::{Count, Csr};
use crate::buffer::Buffer;

/// A type that counts can be decoded to, and Arrow's name for it.
pub trait ArrowCount: Count + ArrowNativeType {
    /// Arrow's type of the same values.
    type Arrow: ArrowPrimitiveType<Native = Self>;
}

impl ArrowCount for i32 {
    type Arrow = arrow_array::types::Int32Type;
}

impl ArrowCount for f32 {
    type Arrow = arrow_array::types::Float32Type;
}

impl ArrowCount for u16 {
    type Arrow = arrow_array::types::UInt16Type;
}

impl<T: ArrowCount> Csr<T> {
    /// Hands the arrays over to Arrow: one row per cell, `gene` as `LargeList<Int32>` and `count` as a `LargeList` of
    /// the count's type, both not null. Where the counts were not decoded there is no column `count`.
    ///
    /// **Shapes**: `n_cells` rows; list `c` has `indptr[c + 1] - indptr[c]` values. Nothing is copied.
    ///
    /// # Errors
    /// None for a matrix that a decode has filled.
    pub fn into_arrow(self) -> Result<RecordBatch, ArrowError> {
        let counted = self.counted;
        let offsets = match self.indptr.is_empty() {
            true => OffsetBuffer::new_empty(),
            false => OffsetBuffer::new(scalars(self.indptr)),
        };
        let mut columns = vec![list(
            "gene",
            offsets.clone(),
            PrimitiveArray::<arrow_array::types::Int32Type>::new(scalars(self.indices), None),
        )?];
        if counted {
            columns.push(list("count", offsets, PrimitiveArray::<T::Arrow>::new(scalars(self.values), None))?);
        }
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

impl<T: ArrowCount> Csr<T> {
    /// As [`Csr::into_arrow`], with the columns of a table that has a row for each cell, such as
    /// `ObsTable::values` gives them (feature `obs`), behind `gene` and `count`.
    ///
    /// # Errors
    /// [`ArrowError::InvalidArgumentError`] for a table of another number of rows, or with a column named `gene` or
    /// `count`.
    pub fn into_arrow_with(self, table: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let counts = self.into_arrow()?;
        if table.num_rows() != counts.num_rows() {
            let why = format!("{} rows of a table for {} cells", table.num_rows(), counts.num_rows());
            return Err(ArrowError::InvalidArgumentError(why));
        }
        let (ours, theirs) = (counts.schema(), table.schema());
        if let Some(field) = theirs.fields().iter().find(|field| ours.index_of(field.name()).is_ok()) {
            return Err(ArrowError::InvalidArgumentError(format!("the table has a column {:?}, too", field.name())));
        }
        let fields: Vec<_> = ours.fields().iter().chain(theirs.fields()).cloned().collect();
        let arrays = counts.columns().iter().chain(table.columns()).cloned().collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
    }
}

/// Takes a buffer over as Arrow's.
fn scalars<T: Pod + ArrowNativeType + Send + Sync>(buffer: Buffer<T>) -> ScalarBuffer<T> {
    let len = buffer.len();
    let bytes = bytes::Bytes::from_owner(buffer);
    ScalarBuffer::new(arrow_buffer::Buffer::from(bytes), 0, len)
}

fn list<P: ArrowPrimitiveType>(
    name: &str,
    offsets: OffsetBuffer<i64>,
    values: PrimitiveArray<P>,
) -> Result<(Field, ArrayRef), ArrowError> {
    let item = Arc::new(Field::new_list_field(P::DATA_TYPE, false));
    let lists = LargeListArray::try_new(item.clone(), offsets, Arc::new(values), None)?;
    Ok((Field::new(name, DataType::LargeList(item), false), Arc::new(lists)))
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Int32Type};

    use super::*;

    #[test]
    fn lists_without_a_copy() {
        let csr = Csr::<f32> {
            n_genes: 9,
            indptr: Buffer::from(&[0, 2, 2, 3][..]),
            indices: Buffer::from(&[1, 8, 0][..]),
            values: Buffer::from(&[1.0, 2.5, 3.0][..]),
            counted: true,
        };
        let at = (csr.indptr().as_ptr().addr(), csr.indices().as_ptr().addr(), csr.values().as_ptr().addr());
        let batch = csr.into_arrow().unwrap();
        assert_eq!(batch.num_rows(), 3);
        let genes = batch.column_by_name("gene").unwrap().as_list::<i64>();
        let counts = batch.column_by_name("count").unwrap().as_list::<i64>();
        assert_eq!(genes.value(0).as_primitive::<Int32Type>().values()[..], [1, 8]);
        assert_eq!(genes.value(1).len(), 0);
        assert_eq!(counts.value(2).as_primitive::<Float32Type>().values()[..], [3.0]);
        let values = counts.values().as_primitive::<Float32Type>().values();
        let indices = genes.values().as_primitive::<Int32Type>().values();
        assert_eq!((genes.offsets().as_ptr().addr(), indices.as_ptr().addr(), values.as_ptr().addr()), at);
    }

    #[test]
    fn with_the_columns_of_a_table() {
        use arrow_array::{Int64Array, StringArray};
        let csr = || Csr::<u16> {
            n_genes: 9,
            indptr: Buffer::from(&[0, 2, 3][..]),
            indices: Buffer::from(&[1, 8, 0][..]),
            values: Buffer::from(&[1, 2, 3][..]),
            counted: true,
        };
        let column = |name, rows: i64| {
            let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
            RecordBatch::try_from_iter([(name, array)]).unwrap()
        };
        let batch = csr().into_arrow_with(&column("n_counts", 2)).unwrap();
        assert_eq!(
            batch.schema().fields().iter().map(|field| &**field.name()).collect::<Vec<_>>(),
            ["gene", "count", "n_counts"]
        );
        assert_eq!(batch.column(2), column("n_counts", 2).column(0));
        for table in [column("n_counts", 3), column("count", 2)] {
            assert!(matches!(csr().into_arrow_with(&table), Err(ArrowError::InvalidArgumentError(_))));
        }
        let none = RecordBatch::try_from_iter([("x", Arc::new(StringArray::new_null(0)) as ArrayRef)]).unwrap();
        assert_eq!(Csr::<i32>::new().into_arrow_with(&none).unwrap().num_columns(), 2);
    }

    #[test]
    fn an_empty_matrix() {
        assert_eq!(Csr::<i32>::new().into_arrow().unwrap().num_rows(), 0);
    }
}
